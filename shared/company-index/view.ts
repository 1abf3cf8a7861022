/** What one read sees: the segments of one version of the index, and the entries that are not flushed into it yet. */
import type { LoadedSegment } from "#shared/company-index/loaded-segment.ts";
import {
  type IndexEntry,
  type IndexRow,
  isTombstone,
  type NoteEntry,
  type NoteText,
} from "#shared/company-index/row.ts";
import { addAll, type Overrides } from "#shared/company-index/run.ts";
import { NewestVersions } from "#shared/company-index/versions.ts";

/** Of each prospect and note that has unflushed entries, the newest. */
export interface Delta {
  readonly prospects: ReadonlyMap<number, IndexEntry>;
  readonly notes: ReadonlyMap<number, NoteEntry>;
}

/** A note that stands in a run without its prospect. */
export interface LooseNote extends NoteText {
  /** Of its run. */
  readonly age: number;
}

export interface SegmentInView {
  readonly segment: LoadedSegment;
  /** Of its run: higher is newer. */
  readonly age: number;
  /** 1 for each row that a newer run or an unflushed entry replaces or deletes; undefined where there is none. */
  readonly dead: Uint8Array | undefined;
}

export interface IndexView {
  readonly segments: readonly SegmentInView[];
  /** Of the notes in all runs that list them. */
  readonly noteVersions: NewestVersions;
  readonly looseNotes: readonly LooseNote[];
  readonly delta: Delta;
}

/** What the runs of one version of the index know beside their segments. */
export interface RunsInView {
  readonly prospectVersions: NewestVersions;
  readonly noteVersions: NewestVersions;
  readonly looseNotes: readonly LooseNote[];
}

/** Oldest first. */
export function runsInView(runs: readonly { overrides: Overrides; looseNotes: readonly NoteText[] }[]): RunsInView {
  const prospectVersions = new NewestVersions();
  const noteVersions = new NewestVersions();
  const looseNotes: LooseNote[] = [];
  for (const [age, { overrides, looseNotes: notes }] of runs.entries()) {
    addAll(prospectVersions, overrides.prospects, age);
    addAll(noteVersions, overrides.notes, age);
    for (const note of notes) looseNotes.push({ ...note, age });
  }
  return { prospectVersions, noteVersions, looseNotes };
}

/**
 * The newest entry of each record. One that was flushed a moment ago stands in both places with the same version: then the
 * unflushed one holds. One that is older than what is flushed is a remainder, and is left out.
 */
export function newestUnflushed(
  { prospectVersions, noteVersions }: RunsInView,
  entries: Iterable<IndexEntry>,
  noteEntries: Iterable<NoteEntry>,
): Delta {
  const prospects = new Map<number, IndexEntry>();
  for (const entry of entries) {
    const { id, version } = entry;
    if (prospectVersions.supersedes(id, version, UNFLUSHED)) continue;
    if ((prospects.get(id)?.version ?? 0) < version) prospects.set(id, entry);
  }
  const notes = new Map<number, NoteEntry>();
  for (const note of noteEntries) {
    const { noteId, version } = note;
    if (noteVersions.supersedes(noteId, version, UNFLUSHED)) continue;
    if ((notes.get(noteId)?.version ?? 0) < version) notes.set(noteId, note);
  }
  return { prospects, notes };
}

/** Newer than every run. */
const UNFLUSHED = Number.POSITIVE_INFINITY;

/** The unflushed prospects that are not deleted. */
export function* liveRows({ prospects }: Delta): Generator<IndexRow> {
  for (const entry of prospects.values()) if (!isTombstone(entry)) yield entry;
}

/** Rows that newer runs replace. */
export function deadRows({ main }: LoadedSegment, age: number, newest: NewestVersions): Uint8Array | undefined {
  if (newest.size === 0) return undefined;
  let dead: Uint8Array | undefined;
  for (let row = 0; row < main.count; row++) {
    if (!newest.supersedes(main.ids[row] ?? 0, main.versions[row] ?? 0, age)) continue;
    dead ??= new Uint8Array(main.count);
    dead[row] = 1;
  }
  return dead;
}

/** The same with the rows dead that unflushed entries replace; `dead` itself where there is none of them here. */
export function deadUnder(
  segment: LoadedSegment,
  dead: Uint8Array | undefined,
  { prospects }: Delta,
): Uint8Array | undefined {
  let result = dead;
  for (const id of prospects.keys()) {
    const row = segment.rowOf(id);
    if (row < 0) continue;
    if (result === dead) result = dead?.slice() ?? new Uint8Array(segment.count);
    if (result !== undefined) result[row] = 1;
  }
  return result;
}
