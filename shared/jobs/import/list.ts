/** The imports of a company, newest first. */
import * as z from "zod/mini";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { summaryOf } from "#shared/jobs/import/read.ts";
import { type ImportPage, type ImportQuery, StoredImport } from "#shared/jobs/import/schema.ts";
import { Id } from "#shared/schema.ts";

const Entry = z.object({ id: Id });

export async function listImports(
  { table }: ApiContext,
  companyId: number,
  { cursor, limit }: ImportQuery,
): Promise<ImportPage> {
  const ids: number[] = [];
  const place = { ...keys.importList(companyId), ...keys.importsBefore(cursor) };
  for await (const item of table.query({ ...place, newestFirst: true, pageItems: limit + 1 })) {
    ids.push(Entry.parse(item).id);
    if (ids.length > limit) break;
  }
  const shown = ids.slice(0, limit);
  const rows = await table.batchGet(shown.map((id) => keys.import(companyId, id)));
  const found = new Map(rows.map((row) => StoredImport.parse(row)).map((stored) => [stored.id, stored]));
  const items = shown.flatMap((id) => found.get(id) ?? []).map(summaryOf);
  return { items, nextCursor: ids.length > limit ? String(shown.at(-1)) : null };
}
