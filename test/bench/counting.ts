/**
 * Wraps a table so that it records the keys of its reads. The keys show how many segments of the company's search index a request reads.
 */
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface CountingTable {
  readonly table: Table;
  /**
   * Returns the ids of the segments that were read. A segment consists of several rows. Every read of a segment includes its row `main#0`,
   * so the reads of this row are counted.
   */
  segments(): string[];
}

export function counting(table: Table): CountingTable {
  const asked: Key[] = [];
  const batchGet: Table["batchGet"] = (keys, how) => {
    asked.push(...keys);
    return table.batchGet(keys, how);
  };
  return {
    table: { ...table, batchGet },
    segments: () => asked.flatMap(({ pk, sk }) => (sk === "main#0" ? [pk.slice(pk.lastIndexOf("#") + 1)] : [])),
  };
}
