/** Substring search over the texts of segments and loose notes: for each word, where it is found. */
import { type Criteria, canMeet, type SearchWord } from "#shared/company-index/criteria.ts";
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

/**
 * In the order of the criteria. The longest word is looked for first, and the next one only where it was found: where a segment has no
 * dead rows, nothing in it matters to rows elsewhere.
 */
export function findWords(view: IndexView, criteria: Criteria): WordHits[] {
  const { words } = criteria;
  const found: WordHits[] = [];
  let before: WordHits | undefined;
  const order = [...words.keys()].sort((a, b) => (words[b]?.text.length ?? 0) - (words[a]?.text.length ?? 0));
  for (const at of order) {
    const word = words[at];
    const earlier = before;
    const isOpen = ({ segment, dead }: SegmentInView, i: number): boolean =>
      dead !== undefined ||
      (earlier === undefined ? canMeet(segment.entry.zone, criteria) : earlier.rows[i] !== undefined);
    if (word === undefined) continue;
    before = findWord(view, word, isOpen);
    found[at] = before;
  }
  return found;
}

/** `isOpen`: whether something in the segment can matter. */
export function findWord(
  view: IndexView,
  word: SearchWord,
  isOpen: (inView: SegmentInView, at: number) => boolean = () => true,
): WordHits {
  if (!/^[^ \n]+$/.test(word.text)) throw new RangeError("a word that is looked for is empty or holds a blank");
  const strays = new Set<number>();
  const bytes = Buffer.from(word.text);
  const digits = word.digits === "" ? undefined : Buffer.from(word.digits);
  const rows = view.segments.map((inView, at) =>
    isOpen(inView, at) ? hitsIn(view, inView, { bytes, digits }, strays) : undefined,
  );
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

interface WordBytes {
  readonly bytes: Buffer;
  readonly digits: Buffer | undefined;
}

/** A note may stand with a row that is dead: its prospect is then looked up, wherever its row lives now. */
function hitsIn(view: IndexView, { segment, age, dead }: SegmentInView, word: WordBytes, strays: Set<number>) {
  const { text, main } = segment;
  if (text === undefined) throw new Error("the texts of a segment were not loaded");
  let hits: RowSet | undefined;
  const add = (row: number): void => {
    hits ??= new RowSet(main.count);
    hits.add(row);
  };
  const isAnyReplaced = view.noteVersions.size + view.delta.notes.size > 0;
  text.visitTextsWith(word.bytes, (found) => {
    const row = text.rowOf[found] ?? 0;
    const note = dead === undefined && !isAnyReplaced ? -1 : text.noteOf(found);
    if (note >= 0 && isReplaced(view, text.noteIds[note] ?? 0, text.noteVersions[note] ?? 0, age)) return;
    if (dead?.[row] !== 1) add(row);
    else if (note >= 0) strays.add(main.ids[row] ?? 0);
  });
  if (word.digits !== undefined) {
    text.visitRowsWithDigits(word.digits, (row) => {
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
