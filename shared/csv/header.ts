/** The first row of an imported file: which column stands where. */
import { BadFile } from "#shared/csv/bad-file.ts";
import { type Column, columnNamed, importColumns } from "#shared/csv/columns.ts";

export interface Header {
  /** Cells that every row has to have. */
  readonly width: number;
  /** By column, counted from 0. */
  readonly places: Readonly<Partial<Record<Column, number>>>;
}

/** Columns that nobody knows are left alone. Throws BadFile where none is known, or one stands twice. */
export function readHeader(cells: readonly string[]): Header {
  const places: Partial<Record<Column, number>> = {};
  for (const [place, cell] of cells.entries()) {
    const column = columnNamed(cell);
    if (column === undefined) continue;
    if (places[column] !== undefined) throw new BadFile(`The header names the column ${column} twice.`);
    places[column] = place;
  }
  if (importColumns.every((column) => places[column] === undefined)) {
    throw new BadFile(`The first row names none of the columns ${importColumns.join(", ")}.`);
  }
  return { width: cells.length, places };
}
