/** Opens and completes an import, and deletes the rows of a failed import. */
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { absent, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/plan.ts";
import type { QuerySpec } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { type Blocks, StoredImport } from "#shared/jobs/import/stored.ts";
import { due, isUntouched, notDue, type RunningJob, revoked } from "#shared/jobs/job.ts";
import { Id } from "#shared/schema.ts";

/** Returns the writes that open an import. At `dueMs`, the sweeper checks whether the import needs work. */
export const opening = (stored: StoredImport, dueMs: number): Write[] => {
  const { companyId, id, createdBy } = stored;
  const entries = [keys.importEntry(companyId, id), keys.importEntry(companyId, id, createdBy)];
  return [
    { put: { ...keys.import(companyId, id), ...stored, ...due(dueMs) }, when: absent },
    { put: { ...keys.openImport(companyId, id), type: "openImport", id } },
    ...entries.map((key) => ({ put: { ...key, type: "importEntry", id } })),
  ];
};

/** Returns writes for the transaction that publishes the prospects. Reads skip an id range until these writes remove its import id. */
export function completion(
  { stored, isHeld }: Pick<RunningJob<StoredImport>, "stored" | "isHeld">,
  nowMs: number,
): Write[] {
  const { companyId, id, prospectBlocks, addressBlocks } = stored;
  const change = { set: { state: "completed", updatedAt: iso(nowMs) }, remove: [...notDue, "runsUntil"] };
  const unmarked = { remove: ["importId"] };
  return [
    { update: keys.import(companyId, id), change, when: isHeld },
    { remove: keys.openImport(companyId, id) },
    ...rangesOf(companyId, prospectBlocks, addressBlocks).map((update) => ({ update, change: unmarked })),
  ];
}

const rangesOf = (companyId: number, prospects: Blocks | null, addresses: Blocks | null): Key[] => [
  ...(prospects === null ? [] : [keys.prospectRange(companyId, prospects.from)]),
  ...(addresses === null ? [] : [keys.addressRange(companyId, addresses.from)]),
];

/** Returns a function that names the segments of an import by consecutive numbers, so that `clear` can find those of a failed import. */
export function pieceNames(importId: number): () => string {
  let pieces = 0;
  return () => pieceName(importId, pieces++);
}

const piecePrefix = (importId: number): string => `import-${importId}-`;
const pieceName = (importId: number, piece: number): string => `${piecePrefix(importId)}${piece}`;

type Source = Pick<ApiContext, "table" | "clock">;

const OpenEntry = z.object({ id: Id });

/**
 * Marks interrupted imports as failed, and deletes their rows. Each import within one request begins with this call. If the call is
 * interrupted, the remaining rows stay invisible until a later call deletes them.
 */
export async function clearAbandoned(source: Source, companyId: number): Promise<void> {
  for await (const item of source.table.query(keys.openImports(companyId))) {
    const found = await source.table.get(keys.import(companyId, OpenEntry.parse(item).id));
    const stored = StoredImport.parse(found);
    // An uploaded file is imported by a job, which deletes the rows itself.
    if (stored.upload !== undefined) continue;
    const isOver = stored.runsUntil === undefined || stored.runsUntil < iso(source.clock.now());
    if (stored.state !== "failed" && !isOver) continue;
    if (!(await failUnlessCompleted(source, stored))) await clearFailed(source, stored);
  }
}

/**
 * Marks the import as failed. It can then no longer complete, even by a transaction that was sent before. Returns true and changes nothing
 * if it is already completed. The condition on the lease is enough, because each other change of the state of a running import also changes
 * or removes its lease.
 */
export const failUnlessCompleted = ({ table, clock }: Source, stored: StoredImport): Promise<boolean> =>
  optimistic(async () => {
    const { companyId, id } = stored;
    const current = StoredImport.parse((await table.get(keys.import(companyId, id))) ?? stored);
    if (current.state === "running") {
      await table.write({
        update: keys.import(companyId, id),
        change: { set: { state: "failed", updatedAt: iso(clock.now()), runsUntil: revoked(current) } },
        when: isUntouched(current),
      });
    }
    return current.state === "completed";
  });

export async function clearFailed({ table }: Pick<Source, "table">, stored: StoredImport): Promise<void> {
  await clear(table, stored);
  const change = { remove: notDue };
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
  await mapConcurrently(blocksIn(prospectBlocks), PARALLEL, (block) =>
    removeAll(table, keys.prospectBlock(companyId, block)),
  );
  await table.batchRemove(blocksIn(addressBlocks).map((block) => keys.addressPack(companyId, block)));
  await table.batchRemove(blocksIn(noteBlocks).map((block) => attachedKeys.noteLocators(companyId, block)));
  await removeAll(table, { ...keys.partManifests(companyId), begins: piecePrefix(id) });
  // The stored segments are numbered from 0 without gaps, so the first number without rows ends the loop.
  for (let piece = 0; await removeAll(table, keys.indexItems(companyId, pieceName(id, piece))); piece++);
  await table.batchRemove(rangesOf(companyId, prospectBlocks, addressBlocks));
  await table.batchRemove([keys.openImport(companyId, id)]);
}

const blocksIn = (blocks: Blocks | null): number[] =>
  blocks === null ? [] : Array.from({ length: blocks.to - blocks.from + 1 }, (_, i) => blocks.from + i);

const Keyed = z.object({ pk: z.string(), sk: z.string() });

/** Deletes the items that the query finds. Returns false if there were none. */
async function removeAll(table: Table, partition: QuerySpec): Promise<boolean> {
  const found = await Array.fromAsync(table.query(partition), (item) => Keyed.parse(item));
  await table.batchRemove(found);
  return found.length > 0;
}
