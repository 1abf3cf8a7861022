/**
 * Rows in any number into the order of the curve: stretches of them are sorted and kept compressed, as segments are, and in
 * the end read side by side.
 */
import { arranged, cutIntoSegments } from "#shared/company-index/arrange.ts";
import { alongCurve, type Placed, placed } from "#shared/company-index/merge.ts";
import { rowsOf } from "#shared/company-index/rows.ts";
import { columnsOf, encodeSegment, type Group, type RowWithNotes } from "#shared/company-index/segment.ts";

/** Rows that are sorted at once: a few ten megabytes. */
const STRETCH_ROWS = 32_768;
/** Characters of their texts, all notes included. */
const STRETCH_TEXT = 16_000_000;

type Packed = Record<Group, Uint8Array>;

export class RowSorter {
  #waiting: RowWithNotes[] = [];
  #length = 0;
  readonly #stretches: Packed[][] = [];

  add(entry: RowWithNotes): void {
    this.#waiting.push(entry);
    this.#length += entry.row.text.length + entry.notes.reduce((sum, { text }) => sum + text.length, 0);
    if (this.#waiting.length >= STRETCH_ROWS || this.#length >= STRETCH_TEXT) this.#pack();
  }

  /** All that were added. To be read once. */
  *sorted(): Generator<RowWithNotes> {
    this.#pack();
    yield* alongCurve(this.#stretches.map(unpacked));
  }

  #pack(): void {
    if (this.#waiting.length === 0) return;
    this.#stretches.push([...cutIntoSegments(arranged(this.#waiting))].map(encodeSegment));
    this.#waiting = [];
    this.#length = 0;
  }
}

export function* unpacked(segments: Packed[]): Generator<Placed, undefined> {
  for (let next = segments.shift(); next !== undefined; next = segments.shift()) {
    for (const entry of rowsOf(columnsOf("sorted rows", next))) yield placed(entry);
  }
  return undefined;
}
