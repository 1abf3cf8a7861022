/** Imports that came to nothing: first nobody can complete them any more, then what they wrote is removed. */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import { equals } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { QuerySpec, Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { type Blocks, StoredImport } from "#shared/jobs/import/schema.ts";
import { Id } from "#shared/schema.ts";

/** Names what an import stores in the company index, one piece after the other. */
export function piecesNamed(importId: number): () => string {
  let pieces = 0;
  return () => pieceName(importId, pieces++);
}

const piecesOf = (importId: number): string => `import-${importId}-`;
const pieceName = (importId: number, piece: number): string => `${piecesOf(importId)}${piece}`;

/** Blocks of ids that are removed at once. */
const PARALLEL = 8;

type Source = Pick<ApiContext, "table" | "clock">;

const Open = z.object({ id: Id });

/** Of the company: those whose run is dead, and those that could not be cleared away before. Mostly there is none. */
export async function clearAbandoned(source: Source, companyId: number): Promise<void> {
  for await (const item of source.table.query(keys.openImports(companyId))) {
    const found = await source.table.get(keys.import(companyId, Open.parse(item).id));
    const stored = StoredImport.parse(found);
    // One by an upload has somebody who looks after it.
    if (stored.job !== undefined) continue;
    if (stored.state === "failed" || stored.runsUntil < source.clock.now()) await abandon(source, stored);
  }
}

/** True: it is completed, and nothing is done. Safe to repeat, and to kill at any point: what is left is not seen. */
export async function abandon({ table, clock }: Source, stored: StoredImport): Promise<boolean> {
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
      if (error instanceof ConditionFailed) return abandon({ table, clock }, stored);
      throw error;
    }
  }
  await clear(table, stored);
  await table.write({ update: keys.import(companyId, id), change: { remove: ["dueShard", "dueAt"] } });
  return false;
}

/** The marks last: as long as they are there, nobody reads what is between them. */
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
  await table.batchRemove(blocksIn(noteBlocks).map((block) => besideKeys.notePlaces(companyId, block)));
  await removeAll(table, { ...keys.runSheets(companyId), begins: piecesOf(id) });
  // Segments are named one after the other; the run comes last and has no parts of its own.
  for (let piece = 0; await removeAll(table, keys.indexParts(companyId, pieceName(id, piece))); piece++);
  await table.batchRemove([
    ...(prospectBlocks === null ? [] : [keys.prospectRange(companyId, prospectBlocks.from)]),
    ...(addressBlocks === null ? [] : [keys.addressRange(companyId, addressBlocks.from)]),
  ]);
  await table.batchRemove([keys.openImport(companyId, id)]);
}

const blocksIn = (blocks: Blocks | null): number[] =>
  blocks === null ? [] : Array.from({ length: blocks.to - blocks.from + 1 }, (_, i) => blocks.from + i);

const Keyed = z.object({ pk: z.string(), sk: z.string() });

/** Gives whether there was anything. */
async function removeAll(table: Table, partition: QuerySpec): Promise<boolean> {
  const found: Key[] = [];
  for await (const item of table.query(partition)) found.push(Keyed.parse(item));
  await table.batchRemove(found);
  return found.length > 0;
}
