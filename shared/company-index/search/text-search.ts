/** Finds the prospects whose searchable text or notes contain the words of a search. */
import { type Criteria, canMeet, type SearchWord } from "#shared/company-index/criteria.ts";
import { type IndexView, isReplaced, type SegmentInView } from "#shared/company-index/search/loaded-segment.ts";
import { RowSet } from "#shared/company-index/search/row-filter.ts";

export interface WordHits {
  /** For each segment of the view, the matching rows. Undefined for a segment without a match. */
  readonly rows: readonly (RowSet | undefined)[];
  /** Ids of prospects that have an unflushed entry and a note with the word. */
  readonly unflushed: ReadonlySet<number>;
}

/** Maximum bytes of text for which one search builds word indexes, so that it still responds soon. */
const WORDS_AT_ONCE = 8_000_000;

/** The first search of a cold function builds none, so that it responds sooner. */
export function buildSomeWords({ segments }: IndexView): void {
  let bytes = 0;
  for (const { segment } of segments) {
    const unindexed = segment.text?.unindexedBytes ?? 0;
    if (unindexed === 0) continue;
    segment.text?.makeWords();
    bytes += unindexed;
    if (bytes >= WORDS_AT_ONCE) return;
  }
}

/**
 * The longest word comes first, and each further word is searched only in the rows that match so far. In a segment with outdated rows, each
 * word is searched in all rows. A note may be there with an outdated row of its prospect, whose current row is in another segment.
 */
export function findWords(view: IndexView, criteria: Criteria): WordHits[] {
  const { words } = criteria;
  const found: WordHits[] = [];
  let before: WordHits | undefined;
  const longestFirst = [...words.entries()].sort(([, a], [, b]) => b.text.length - a.text.length);
  for (const [at, word] of longestFirst) {
    const earlier = before;
    before = findWord(view, word, ({ segment, dead }, i) => {
      if (dead !== undefined) return "all";
      if (earlier !== undefined) return earlier.rows[i];
      return canMeet(segment.entry.zone, criteria) ? "all" : undefined;
    });
    found[at] = before;
  }
  return found;
}

/** The rows in which the current word is searched. Undefined if no row can match. */
type Among = RowSet | "all" | undefined;

/** `amongIn` returns the rows in which the word is searched, for the segment at the position `at`. */
export function findWord(
  view: IndexView,
  word: SearchWord,
  amongIn: (inView: SegmentInView, at: number) => Among = () => "all",
): WordHits {
  if (!/^[^ \n]+$/.test(word.text)) throw new RangeError("a search word must not be empty or contain a blank");
  const strays = new Set<number>();
  const bytes = Buffer.from(word.text);
  const digits = word.digits === "" ? undefined : Buffer.from(word.digits);
  const rows = view.segments.map((inView, at) => hitsIn(view, inView, { bytes, digits }, amongIn(inView, at), strays));
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

/** A note may be stored with an outdated row of its prospect. Its prospect is then added to `strays`. */
function hitsIn(
  view: IndexView,
  { segment, age, dead }: SegmentInView,
  word: WordBytes,
  among: Among,
  strays: Set<number>,
): RowSet | undefined {
  const { text, main } = segment;
  if (among === undefined) return undefined;
  if (text === undefined) throw new Error("the texts of a segment were not loaded");
  const chosen = among === "all" ? undefined : among;
  let hits: RowSet | undefined;
  const add = (row: number): void => {
    if (chosen?.has(row) === false) return;
    hits ??= new RowSet(main.count);
    hits.add(row);
  };
  const isAnyReplaced = view.noteVersions.size + view.delta.notes.size > 0;
  text.visitTextsWith(word.bytes, (found) => {
    const row = text.rowOf[found] ?? 0;
    if (dead === undefined && !isAnyReplaced) return add(row);
    const note = text.noteOf(found);
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

function mark(view: IndexView, rows: (RowSet | undefined)[], id: number): void {
  for (const [i, { segment, dead }] of view.segments.entries()) {
    const row = segment.rowOf(id);
    if (row < 0 || dead?.[row] === 1) continue;
    const hits = rows[i] ?? new RowSet(segment.count);
    hits.add(row);
    rows[i] = hits;
  }
}
