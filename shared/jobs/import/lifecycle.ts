/** Opens and completes an import, and deletes the rows of a failed import. */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { absent, equals } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { QuerySpec } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { type Blocks, StoredImport } from "#shared/jobs/import/stored.ts";
import { ending } from "#shared/jobs/lease.ts";
import { Id } from "#shared/schema.ts";

/** Returns the writes that open an import. At `dueMs`, the sweeper checks whether the import needs work. */
export const opening = (stored: StoredImport, dueMs: number): Write[] => {
  const { companyId, id } = stored;
  const due = { dueShard: keys.jobShard, dueAt: iso(dueMs) };
  return [
    { put: { ...keys.import(companyId, id), ...stored, ...due }, when: absent },
    { put: { ...keys.openImport(companyId, id), type: "openImport", id } },
    ...listEntries(stored),
  ];
};

export const openingCompleted = (stored: StoredImport): Write[] => [
  { put: { ...keys.import(stored.companyId, stored.id), ...stored, state: "completed" }, when: absent },
  ...listEntries(stored),
];

const listEntries = ({ companyId, id, createdBy }: StoredImport): Write[] =>
  [keys.importEntry(companyId, id), keys.importEntry(companyId, id, createdBy)].map((key) => ({
    put: { ...key, type: "importEntry", id },
  }));

/**
 * Returns the writes that complete an import, for the transaction that adds the prospects to the company index. They remove the import's id
 * from its id ranges, so that reads no longer skip these.
 */
export function completion(stored: StoredImport, set: Partial<StoredImport> & Item, nowMs: number): Write[] {
  const { companyId, id, prospectBlocks, addressBlocks } = stored;
  const unmarked = { remove: ["importId"] };
  return [
    ending(keys.import(companyId, id), stored, { ...set, state: "completed" }, nowMs),
    { remove: keys.openImport(companyId, id) },
    ...(prospectBlocks === null
      ? []
      : [{ update: keys.prospectRange(companyId, prospectBlocks.from), change: unmarked }]),
    ...(addressBlocks === null ? [] : [{ update: keys.addressRange(companyId, addressBlocks.from), change: unmarked }]),
  ];
}

/** Returns a function that numbers the segments of an import, so that `clear` can find those of a failed import. */
export function pieceNames(importId: number): () => string {
  let pieces = 0;
  return () => pieceName(importId, pieces++);
}

const piecePrefix = (importId: number): string => `import-${importId}-`;
const pieceName = (importId: number, piece: number): string => `${piecePrefix(importId)}${piece}`;

type Source = Pick<ApiContext, "table" | "clock">;

const OpenEntry = z.object({ id: Id });

/** Deletes the rows of interrupted imports. Each new import within one request calls this first. */
export async function clearAbandoned(source: Source, companyId: number): Promise<void> {
  for await (const item of source.table.query(keys.openImports(companyId))) {
    const found = await source.table.get(keys.import(companyId, OpenEntry.parse(item).id));
    const stored = StoredImport.parse(found);
    // The job of an uploaded file deletes its rows.
    if (stored.job !== undefined) continue;
    if (stored.state === "failed" || stored.runsUntil < source.clock.now()) await abandon(source, stored);
  }
}

/**
 * Marks the import as failed and deletes its rows. Returns true and changes nothing if it is completed. It may be interrupted and repeated,
 * because the remaining rows are invisible.
 */
export async function abandon(source: Source, stored: StoredImport): Promise<boolean> {
  if (await failUnlessCompleted(source, stored)) return true;
  await clearFailed(source, stored);
  return false;
}

/**
 * Marks the import as failed. It can then no longer complete, even by a transaction that was sent before. Returns true and changes nothing
 * if it is already completed.
 */
export async function failUnlessCompleted({ table, clock }: Source, stored: StoredImport): Promise<boolean> {
  const { companyId, id } = stored;
  const current = StoredImport.parse((await table.get(keys.import(companyId, id))) ?? stored);
  if (current.state === "completed") return true;
  if (current.state === "running") {
    try {
      await table.write({
        update: keys.import(companyId, id),
        change: { set: { state: "failed", imported: 0, updatedAt: iso(clock.now()) }, add: { version: 1 } },
        when: equals("version", current.version),
      });
    } catch (error) {
      if (error instanceof ConditionFailed) return failUnlessCompleted({ table, clock }, stored);
      throw error;
    }
  }
  return false;
}

/** Deletes the rows of a failed import, and removes it from the due index. */
export async function clearFailed({ table }: Pick<Source, "table">, stored: StoredImport): Promise<void> {
  await clear(table, stored);
  const change = { remove: ["dueShard", "dueAt"] };
  await table.write({ update: keys.import(stored.companyId, stored.id), change });
}

const PARALLEL = 8;

/**
 * Deletes the records that an import has created. Changes of existing prospects and created tags remain. The rows of its id ranges are
 * deleted last, so that nobody sees only some of the prospects.
 */
export async function clear(
  table: Table,
  { companyId, id, prospectBlocks, addressBlocks, noteBlocks }: StoredImport,
): Promise<void> {
  const blocks = blocksIn(prospectBlocks);
  for (let at = 0; at < blocks.length; at += PARALLEL) {
    const some = blocks.slice(at, at + PARALLEL);
    await Promise.all(some.map((block) => removeAll(table, keys.prospectBlock(companyId, block))));
  }
  await table.batchRemove(blocksIn(addressBlocks).map((block) => keys.addressPack(companyId, block)));
  await table.batchRemove(blocksIn(noteBlocks).map((block) => attachedKeys.noteLocators(companyId, block)));
  await removeAll(table, { ...keys.partManifests(companyId), begins: piecePrefix(id) });
  // The segments are numbered without gaps.
  for (let piece = 0; await removeAll(table, keys.indexItems(companyId, pieceName(id, piece))); piece++);
  await table.batchRemove([
    ...(prospectBlocks === null ? [] : [keys.prospectRange(companyId, prospectBlocks.from)]),
    ...(addressBlocks === null ? [] : [keys.addressRange(companyId, addressBlocks.from)]),
  ]);
  await table.batchRemove([keys.openImport(companyId, id)]);
}

const blocksIn = (blocks: Blocks | null): number[] =>
  blocks === null ? [] : Array.from({ length: blocks.to - blocks.from + 1 }, (_, i) => blocks.from + i);

const Keyed = z.object({ pk: z.string(), sk: z.string() });

/** Returns false if there were none. */
async function removeAll(table: Table, partition: QuerySpec): Promise<boolean> {
  const found: Key[] = [];
  for await (const item of table.query(partition)) found.push(Keyed.parse(item));
  await table.batchRemove(found);
  return found.length > 0;
}
