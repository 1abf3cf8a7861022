/** Wraps a table so that it records the keys of its reads. The keys show which segments of the company index a read loads. */
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface CountingTable {
  readonly table: Table;
  /**
   * Returns the ids of the index segments that were read. Every read of a segment requests the part with its main columns, so this part is
   * counted.
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
