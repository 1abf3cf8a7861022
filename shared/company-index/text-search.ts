/** Substring search over the texts of segments and loose notes: for each word, where it is found. */
import type { SearchWord } from "#shared/company-index/criteria.ts";
import { RowSet } from "#shared/company-index/row-filter.ts";
import type { TextColumns } from "#shared/company-index/segment.ts";
import type { IndexView, SegmentInView } from "#shared/company-index/view.ts";

/** Where one word is found. */
export interface WordHits {
  /** Of each segment of the view the live rows in whose texts the word occurs; undefined where there is none. */
  readonly rows: readonly (RowSet | undefined)[];
  /** Unflushed prospects in whose notes it occurs. */
  readonly unflushed: ReadonlySet<number>;
}

export function findWord(view: IndexView, word: SearchWord): WordHits {
  const strays = new Set<number>();
  const rows = view.segments.map((inView) => hitsIn(view, inView, word, strays));
  for (const { prospectId, noteId, version, text, age } of view.looseNotes) {
    if (text.includes(word.text) && !isReplaced(view, noteId, version, age)) strays.add(prospectId);
  }
  for (const { prospectId, text } of view.delta.notes.values()) if (text?.includes(word.text)) strays.add(prospectId);
  const unflushed = new Set<number>();
  for (const id of strays) {
    if (view.delta.prospects.has(id)) unflushed.add(id);
    else mark(view, rows, id);
  }
  return { rows, unflushed };
}

/** A note may stand with a row that is dead: its prospect is then looked up, wherever its row lives now. */
function hitsIn(view: IndexView, { segment, age, dead }: SegmentInView, word: SearchWord, strays: Set<number>) {
  const { text, main } = segment;
  if (text === undefined) throw new Error("the texts of a segment were not loaded");
  let hits: RowSet | undefined;
  const add = (row: number): void => {
    hits ??= new RowSet(main.count);
    hits.add(row);
  };
  for (const entry of entriesWith(text.bytes, text.starts, Buffer.from(word.text))) {
    const row = text.rowOf[entry] ?? 0;
    const noteId = text.noteIds[entry] ?? 0;
    if (noteId !== 0 && isReplaced(view, noteId, text.noteVersions[entry] ?? 0, age)) continue;
    if (dead?.[row] !== 1) add(row);
    else if (noteId !== 0) strays.add(main.ids[row] ?? 0);
  }
  if (word.digits !== "") {
    for (const row of entriesWith(text.digits, text.digitStarts, Buffer.from(word.digits))) {
      if (dead?.[row] !== 1) add(row);
    }
  }
  return hits;
}

function isReplaced({ noteVersions, delta }: IndexView, noteId: number, version: number, age: number): boolean {
  return (delta.notes.get(noteId)?.version ?? 0) >= version || noteVersions.supersedes(noteId, version, age);
}

function mark(view: IndexView, rows: (RowSet | undefined)[], id: number): void {
  for (const [i, { segment, dead }] of view.segments.entries()) {
    const row = segment.rowOf(id);
    if (row < 0 || dead?.[row] === 1) continue;
    const hits = rows[i] ?? new RowSet(segment.count);
    hits.add(row);
    rows[i] = hits;
  }
}

/** Each entry in which the word occurs, once. */
function* entriesWith(bytes: Buffer, starts: TextColumns["starts"], word: Buffer): Generator<number> {
  let entry = 0;
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, starts[entry + 1])) {
    entry = entryAt(starts, at, entry);
    yield entry;
    if ((starts[entry + 1] ?? 0) >= bytes.length) return;
  }
}

/** Looks ahead in growing steps, then between the last two: hits may be near or far. */
function entryAt(starts: Uint32Array, at: number, from: number): number {
  let low = from;
  let step = 1;
  while ((starts[low + step] ?? Number.POSITIVE_INFINITY) <= at) {
    low += step;
    step *= 2;
  }
  let high = low + step;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] ?? Number.POSITIVE_INFINITY) <= at) low = middle;
    else high = middle;
  }
  return low;
}
