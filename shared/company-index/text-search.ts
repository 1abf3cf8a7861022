/** Substring search over the texts of segments and loose notes: for each word, where it is found. */
import type { SearchWord } from "#shared/company-index/criteria.ts";
import { RowSet } from "#shared/company-index/row-filter.ts";
import type { IndexView, SegmentInView } from "#shared/company-index/view.ts";

/** Where one word is found. */
export interface WordHits {
  /** Of each segment of the view the live rows in whose texts the word occurs; undefined where there is none. */
  readonly rows: readonly (RowSet | undefined)[];
  /** Unflushed prospects in whose notes it occurs. */
  readonly unflushed: ReadonlySet<number>;
}

/**
 * Bytes of text whose words one search makes: some 100 ms of work. A company of 100 000 prospects has all its words after two
 * searches, one of a million after fifteen.
 */
const WORDS_AT_ONCE = 8_000_000;

/** Before a search that is not a function's first one. */
export function makeSomeWords({ segments }: IndexView): void {
  let bytes = 0;
  for (const { segment } of segments) {
    const waiting = segment.text?.waiting ?? 0;
    if (waiting === 0) continue;
    segment.text?.makeWords();
    bytes += waiting;
    if (bytes >= WORDS_AT_ONCE) return;
  }
}

export function findWord(view: IndexView, word: SearchWord): WordHits {
  if (!/^[^ \n]+$/.test(word.text)) throw new RangeError("a word that is looked for is empty or holds a blank");
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
  text.visitTextsWith(Buffer.from(word.text), (found) => {
    const row = text.rowOf[found] ?? 0;
    const note = text.noteOf(found);
    if (note >= 0 && isReplaced(view, text.noteIds[note] ?? 0, text.noteVersions[note] ?? 0, age)) return;
    if (dead?.[row] !== 1) add(row);
    else if (note >= 0) strays.add(main.ids[row] ?? 0);
  });
  if (word.digits !== "") {
    text.visitRowsWithDigits(Buffer.from(word.digits), (row) => {
      if (dead?.[row] !== 1) add(row);
    });
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
