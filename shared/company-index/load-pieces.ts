/** Loads pieces of the index, many at a time; each is decoded as it comes. */
import { type Piece, readPieces } from "#shared/company-index/store.ts";
import type { Table } from "#shared/db/table.ts";

/** A piece that is not in memory yet, and what becomes of its bytes. */
export interface Load {
  readonly piece: Piece;
  readonly keep: (bytes: Uint8Array, label: string) => void;
}

/** One round, or none. Gives whether there was anything to load. What has come is decoded while the rest is on its way. */
export async function loadAll(table: Table, companyId: number, loads: Iterable<Load>): Promise<boolean> {
  const batches = batchesOf(loads);
  if (batches.length === 0) return false;
  const work = async (): Promise<void> => {
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift())
      await loadBatch(table, companyId, batch);
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  return true;
}

async function loadBatch(table: Table, companyId: number, loads: readonly Load[]): Promise<void> {
  const pieces = loads.map(({ piece }) => piece);
  const bytes = await readPieces(table, companyId, pieces);
  // A segment's main columns come before its other ones.
  for (const [i, { piece, keep }] of loads.entries()) {
    keep(bytes[i] ?? new Uint8Array(), `${piece.name} of ${piece.owner} of company ${companyId}`);
    // Stored bytes are of no use any more, and many are decoded one after the other.
    bytes[i] = new Uint8Array();
  }
}

/** Calls at a time: more would only wait for a socket. */
const PARALLEL = 40;

/** Items of the table that are asked for in one call: what comes at once is in memory twice, as it is stored and as it is used. */
const BATCH_PARTS = 32;

/** All that is loaded of a segment is in one of them. */
function batchesOf(loads: Iterable<Load>): Load[][] {
  const batches: Load[][] = [];
  let parts = BATCH_PARTS;
  let owner = "";
  for (const load of loads) {
    if (parts >= BATCH_PARTS && load.piece.owner !== owner) {
      batches.push([]);
      parts = 0;
    }
    batches.at(-1)?.push(load);
    parts += load.piece.parts;
    owner = load.piece.owner;
  }
  return batches;
}
