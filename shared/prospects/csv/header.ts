/** The first row of an imported file: which column stands where. */
import { folded } from "#shared/caseless.ts";
import { BadFile } from "#shared/prospects/csv/bad-file.ts";
import { type Column, columnNamed, importColumns } from "#shared/prospects/csv/columns.ts";
import type { Mapping } from "#shared/prospects/csv/mapping.ts";

export interface Header {
  /** Cells that every row has to have. */
  readonly width: number;
  /** By column, counted from 0. */
  readonly places: Readonly<Partial<Record<Column, number>>>;
}

/** Columns that nobody knows are left alone. Throws BadFile where none is known, one stands twice, or a mapped one is missing. */
export function readHeader(cells: readonly string[], mapping: Mapping = {}): Header {
  const mapped = new Map(Object.entries(mapping).map(([header, column]) => [folded(header), column]));
  const places: Partial<Record<Column, number>> = {};
  for (const [place, cell] of cells.entries()) {
    const given = mapped.get(folded(cell));
    const column = given === undefined ? columnNamed(cell) : given;
    mapped.delete(folded(cell));
    if (column === undefined || column === null) continue;
    if (places[column] !== undefined) throw new BadFile(`The header names the column ${column} twice.`);
    places[column] = place;
  }
  const [missing] = mapped.keys();
  if (missing !== undefined) throw new BadFile(`The first row has no column "${missing}" that could be mapped.`);
  if (importColumns.every((column) => places[column] === undefined)) {
    throw new BadFile(`The first row names none of the columns ${importColumns.join(", ")}.`);
  }
  return { width: cells.length, places };
}
