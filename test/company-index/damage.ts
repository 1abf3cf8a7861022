/** Damages a company index in ways that the service itself never causes. `verify` must find each damage, and a rebuild must repair it. */
import { readUnflushed } from "#shared/company-index/delta.ts";
import { moveHead, type Part, partManifestItem, readManifest } from "#shared/company-index/manifest.ts";
import { readPartOverrides, readSegments } from "#shared/company-index/pieces.ts";
import { type RowWithNotes, rowsOf } from "#shared/company-index/segment.ts";
import { completePart, storeSegments } from "#shared/company-index/write/publish.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export type IndexInHand = Awaited<ReturnType<typeof indexInHand>>;

export async function indexInHand(table: Table, companyId: number) {
  const { head } = await readUnflushed(table, companyId);
  const manifest = await readManifest(table, companyId, head.manifest);
  const [oldest, newest] = [manifest.parts[0], manifest.parts.at(-1)];
  const segment = oldest?.segments[0];
  if (oldest === undefined || newest === undefined || segment === undefined) throw new Error("there is no index");
  return { table, companyId, head, manifest, oldest, newest, segment };
}

export async function putManifest({ table, companyId, head }: IndexInHand, parts: readonly Part[]): Promise<void> {
  await table.batchPut([...new Set(parts)].map((part) => partManifestItem(companyId, part, 0, [])));
  const manifest = parts.map(({ id }) => id);
  await moveHead(table, companyId, head, { version: head.version + 1, manifest });
}

export const pieceOf = ({ companyId }: IndexInHand, owner: string, name: string): Key =>
  keys.indexItem(companyId, owner, name, 0);

export async function corrupt({ table }: IndexInHand, key: Key, field = "bytes"): Promise<void> {
  const item = await table.get(key);
  const stored = item?.[field];
  if (!(stored instanceof Uint8Array)) throw new Error("there is no such piece");
  const bytes = Uint8Array.from(stored);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 0x55;
  await table.batchPut([{ ...item, ...key, [field]: bytes }]);
}

/** Replaces the rows of the oldest part, which the first flush wrote. The part must fit into one segment. */
export async function rewriteRows(index: IndexInHand, change: (rows: RowWithNotes[]) => RowWithNotes[]): Promise<void> {
  const { table, companyId, manifest, oldest } = index;
  const rows = (await readSegments(table, companyId, oldest)).flatMap((decode) => [...rowsOf(decode())]);
  const segments = await storeSegments(table, companyId, change(rows));
  const count = segments.reduce((sum, segment) => sum + segment.rows, 0);
  await putManifest(index, [{ ...oldest, segments, rows: count }, ...manifest.parts.slice(1)]);
}

/**
 * Replaces the overrides and the loose notes of the newest part, which the last flush wrote. Overrides name the records whose versions in
 * older parts are outdated. A loose note belongs to a prospect in another part.
 */
export async function rewriteOverrides(
  index: IndexInHand,
  change: (stored: Parameters<typeof completePart>[3]) => Parameters<typeof completePart>[3],
): Promise<void> {
  const { table, companyId, manifest, newest } = index;
  const [stored] = await readPartOverrides(table, companyId, [newest]);
  if (stored === undefined) throw new Error("the part has no overrides");
  const { prospects, notes } = stored.overrides;
  const listed = ({ ids, versions }: typeof prospects) => [...ids].map((id, i) => ({ id, version: versions[i] ?? 0 }));
  const now = { prospects: listed(prospects), notes: listed(notes), looseNotes: stored.looseNotes };
  const part = await completePart(table, companyId, newest.segments, change(now));
  await putManifest(index, [...manifest.parts.slice(0, -1), part]);
}
