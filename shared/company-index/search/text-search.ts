/** Finds the prospects whose searchable text or notes contain the words of a search. */
import { doubleAt, uint16At, uint32At } from "#shared/at.ts";
import { type Criteria, canMeet, type SearchWord } from "#shared/company-index/criteria.ts";
import {
  type IndexView,
  isReplaced,
  type SegmentInView,
  type TextFinder,
} from "#shared/company-index/search/loaded-segment.ts";
import { Patterns, WORDS_IN_MASK } from "#shared/company-index/search/plain-texts.ts";
import { RowSet } from "#shared/company-index/search/row-filter.ts";
import { requireTime } from "#shared/deadline.ts";

export interface WordHits {
  /** The rows with all words, for each segment of the view. Undefined for a segment without a match. */
  readonly rows: readonly (RowSet | undefined)[];
  /** For each word, the ids of prospects that have an unflushed entry, and a note with the word. */
  readonly unflushed: readonly ReadonlySet<number>[];
}

/** One search builds word indexes for about this many bytes of text, so that it still responds soon. */
const WORDS_AT_ONCE = 8_000_000;

/** Builds some word indexes. The first search in a segment builds none, so that it responds sooner. */
export function buildSomeWords({ segments }: IndexView): void {
  let bytes = 0;
  for (const { segment } of segments) {
    const { text } = segment;
    if (text === undefined || text.unindexedBytes === 0) continue;
    bytes += text.unindexedBytes;
    text.makeWords();
    if (bytes >= WORDS_AT_ONCE) return;
  }
}

/**
 * Up to this number of words are searched one after the other, and more words in one pass. A rare word that is searched alone takes a
 * hundredth of the time of a read of all texts. A frequent word takes as long as a read of all texts.
 */
const FEW_WORDS = 6;

export interface FoundWords {
  /** A row matches only if it is in the result of each search. */
  readonly searches: readonly WordHits["rows"][];
  /** One set of prospect ids for each word, in the order of the words in the criteria. */
  readonly unflushed: WordHits["unflushed"];
}

/**
 * Searches the longest word first, and each further word only in the rows that match so far. In a segment with outdated rows, it searches
 * each word in all rows: a note may be there with an outdated row of its prospect, whose current row is in another segment.
 */
export function findWords(view: IndexView, criteria: Criteria): FoundWords {
  const searches: WordHits["rows"][] = [];
  const unflushed: ReadonlySet<number>[] = [];
  const longestFirst = [...criteria.words.entries()].sort(([, a], [, b]) => b.text.length - a.text.length);
  const atOnce = longestFirst.length > FEW_WORDS ? WORDS_IN_MASK : 1;
  while (longestFirst.length > 0) {
    const some = longestFirst.splice(0, atOnce);
    const earlier = searches.at(-1);
    const amongIn = ({ segment, dead }: SegmentInView, i: number): Among => {
      if (dead !== undefined) return "all";
      if (earlier !== undefined) return earlier[i];
      return canMeet(segment.entry.zone, criteria) ? "all" : undefined;
    };
    const words = some.map(([, word]) => word);
    const hits = findAll(view, words, amongIn);
    searches.push(hits.rows);
    for (const [i, [at]] of some.entries()) unflushed[at] = hits.unflushed[i] ?? new Set();
  }
  return { searches, unflushed };
}

/** The rows in which the words are searched. Undefined if no row can match. */
type Among = RowSet | "all" | undefined;

/** `amongIn` returns the rows of a segment in which the words are searched. There are at most `WORDS_IN_MASK` words. */
export function findAll(
  view: IndexView,
  words: readonly SearchWord[],
  amongIn: (inView: SegmentInView, at: number) => Among = () => "all",
): WordHits {
  if (!words.every(({ text }) => /^[^ \n]+$/.test(text)))
    throw new RangeError("a search word must not be empty or contain a blank");
  const all = words.reduce((mask, _, word) => mask | (1 << word), 0);
  const strays = new Map<number, number>();
  const finder = finderOf(words);
  const stray: Add = (id, found) => strays.set(id, (strays.get(id) ?? 0) | found);
  const inText = (text: string): number =>
    words.reduce((mask, word, i) => (text.includes(word.text) ? mask | (1 << i) : mask), 0);
  const hits = view.segments.map((inView, at) => {
    requireTime();
    const among = amongIn(inView, at);
    return among && hitsIn(view, inView, finder, new RowHits(inView.segment.count, all, among), stray);
  });
  for (const { prospectId, noteId, version, text, age } of view.looseNotes) {
    const found = inText(text);
    if (found !== 0 && !isReplaced(view, noteId, version, age)) stray(prospectId, found);
  }
  for (const { prospectId, text } of view.delta.notes.values()) if (text !== null) stray(prospectId, inText(text));
  const unflushed = words.map(() => new Set<number>());
  for (const [id, found] of strays) {
    if (!view.delta.prospects.has(id)) mark(view, hits, all, id, found);
    else for (const [i, ids] of unflushed.entries()) if ((found & (1 << i)) !== 0) ids.add(id);
  }
  return { rows: hits.map((one) => (one === undefined || one.rows.size === 0 ? undefined : one.rows)), unflushed };
}

/** `found` is a bit mask of words. */
type Add = (rowOrId: number, found: number) => void;

interface Finder {
  readonly inTexts: TextFinder;
  readonly inDigits: TextFinder;
}

function finderOf(words: readonly SearchWord[]): Finder {
  const [only, second] = words;
  if (only === undefined || second !== undefined) {
    const texts = new Patterns(words.map(({ text }) => [text]));
    const digits = new Patterns(words.map((word) => word.digits));
    return {
      inTexts: (stored, visit) => stored.visitTextsWithSome(texts, visit),
      inDigits: (stored, visit) => stored.visitTextsWithSome(digits, visit),
    };
  }
  const text = Buffer.from(only.text);
  const digits = only.digits.map((one) => Buffer.from(one));
  return {
    inTexts: (stored, visit) => stored.visitTextsWith(text, (found) => visit(found, 1)),
    inDigits: (stored, visit) => {
      for (const one of digits) stored.visitTextsWith(one, (row) => visit(row, 1));
    },
  };
}

/** Collects the words that are found in each row of a segment or in its notes. */
class RowHits {
  readonly rows: RowSet;
  readonly #count: number;
  readonly #all: number;
  readonly #among: RowSet | "all";
  /** The words found in each row, as bit masks. Undefined as long as every row with a word has all words. */
  #masks: Uint32Array | undefined;

  constructor(count: number, all: number, among: RowSet | "all") {
    this.rows = new RowSet(count);
    this.#count = count;
    this.#all = all;
    this.#among = among;
  }

  add(row: number, found: number): void {
    if (this.#among !== "all" && !this.#among.has(row)) return;
    this.addStray(row, found);
  }

  addStray(row: number, found: number): void {
    let sum = found;
    if (found !== this.#all) {
      this.#masks ??= new Uint32Array(this.#count);
      sum |= uint32At(this.#masks, row);
      this.#masks[row] = sum;
    }
    if (sum === this.#all) this.rows.add(row);
  }
}

/** Adds the hits of one segment. If a note is stored with an outdated row of its prospect, passes the prospect to `stray`. */
function hitsIn(
  view: IndexView,
  { segment, age, dead }: SegmentInView,
  { inTexts, inDigits }: Finder,
  hits: RowHits,
  stray: Add,
): RowHits {
  const { texts, main } = segment;
  const isAnyReplaced = view.noteVersions.size + view.delta.notes.size > 0;
  texts.find(inTexts, (at, found) => {
    const row = uint16At(texts.rowOf, at);
    if (dead === undefined && !isAnyReplaced) return hits.add(row, found);
    const note = texts.noteOf(at);
    if (note >= 0 && isReplaced(view, doubleAt(texts.noteIds, note), doubleAt(texts.noteVersions, note), age)) return;
    if (dead?.[row] !== 1) hits.add(row, found);
    else if (note >= 0) stray(doubleAt(main.ids, row), found);
  });
  texts.findInDigits(inDigits, (row, found) => {
    if (dead?.[row] !== 1) hits.add(row, found);
  });
  return hits;
}

function mark(view: IndexView, hits: (RowHits | undefined)[], all: number, id: number, found: number): void {
  for (const [i, { segment, dead }] of view.segments.entries()) {
    const row = segment.rowOf(id);
    if (row < 0 || dead?.[row] === 1) continue;
    const ofSegment = hits[i] ?? new RowHits(segment.count, all, "all");
    ofSegment.addStray(row, found);
    hits[i] = ofSegment;
  }
}
