/** A table that records the keys of its reads, and so the segments that a read loads. */
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface CountingTable {
  readonly table: Table;
  /** Segments whose first columns were read. */
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
