/** Reads what became of an import. */
import * as z from "zod/mini";
import { keys } from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import { notFound } from "#shared/http/problem.ts";
import { type Import, RowFault, StoredImport } from "#shared/imports/schema.ts";
import type { World } from "#shared/world.ts";

/** While it runs, nothing is imported yet. */
export async function readImport({ table }: World, companyId: number, id: number): Promise<Import> {
  const item = await table.get(keys.import(companyId, id));
  if (item === undefined) throw notFound("import");
  const { state, processed, imported, skipped, errors, createdAt, updatedAt } = StoredImport.parse(item);
  return {
    id,
    state,
    processed,
    imported: state === "completed" ? imported : 0,
    skipped,
    errors: unpacked(z.array(RowFault), errors),
    createdAt,
    updatedAt,
  };
}
