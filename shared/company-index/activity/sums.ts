/** The sums of one day (UTC): the number of facts by user, status and kind. */
import { at, doubleAt } from "#shared/at.ts";
import {
  ByteReader,
  ByteWriter,
  compress,
  decompress,
  idOrZero,
  readNumbers,
  writeNumbers,
} from "#shared/company-index/encoding.ts";
import { countBits, type Fact, factKinds, type ImportedFacts } from "#shared/company-index/facts.ts";
import { column } from "#shared/company-index/segment.ts";

/** The counts of one user and one status. `counts[i]` belongs to `factKinds[i]`. */
export interface Cell {
  readonly userId: number;
  readonly statusId: number | null;
  readonly counts: readonly number[];
}

export class Sums {
  readonly #cells = new Map<string, { userId: number; statusId: number | null; counts: number[] }>();

  add(userId: number, statusId: number | null, kind: number, count: number): void {
    if (count === 0) return;
    const key = `${userId} ${statusId}`;
    const cell = this.#cells.get(key) ?? { userId, statusId, counts: factKinds.map(() => 0) };
    this.#cells.set(key, cell);
    cell.counts[kind] = at(cell.counts, kind) + count;
  }

  addFact({ kind, userId, statusId }: Fact): void {
    this.add(userId, statusId, factKinds.indexOf(kind), 1);
  }

  addImported({ userId, byStatus, withNote }: ImportedFacts): void {
    for (const [statusId, count] of byStatus) {
      this.add(userId, statusId, factKinds.indexOf("creation"), count);
      if (statusId !== null) this.add(userId, statusId, factKinds.indexOf("statusChange"), count);
    }
    this.add(userId, null, factKinds.indexOf("note"), countBits(withNote));
  }

  addCell({ userId, statusId, counts }: Cell): void {
    for (const [kind, count] of counts.entries()) this.add(userId, statusId, kind, count);
  }

  *[Symbol.iterator](): Generator<Cell> {
    yield* this.#cells.values();
  }
}

export function encodeCells(cells: readonly Cell[]): Uint8Array {
  const into = new ByteWriter();
  into.integer(cells.length);
  writeNumbers(into, column(cells, "userId"));
  writeNumbers(
    into,
    cells.map(({ statusId }) => idOrZero(statusId)),
  );
  for (const kind of factKinds.keys()) for (const { counts } of cells) into.integer(at(counts, kind));
  return compress(into.finish());
}

export const decodeCells = (bytes: Uint8Array): Cell[] =>
  decompress("the sums of a day", bytes, (plain) => {
    const from = new ByteReader(plain);
    const count = from.integer();
    const [userIds, statusIds] = [readNumbers(from, count), readNumbers(from, count)];
    const columns = factKinds.map(() => Array.from({ length: count }, () => from.integer()));
    return Array.from({ length: count }, (_, i) => ({
      userId: doubleAt(userIds, i),
      statusId: statusIds[i] || null,
      counts: columns.map((column) => at(column, i)),
    }));
  });
