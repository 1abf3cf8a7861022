/**
 * Merges several runs of the search index into one. The new run is sorted by geohash and contains the newest version of each prospect and
 * note. A run consists of segments of up to 4 096 rows. Only one segment of each run is decoded at a time, to limit the memory.
 */

import type { Run } from "#shared/company-index/manifest.ts";
import { noRunOverrides, readRunOverrides, readSegments } from "#shared/company-index/pieces.ts";
import type { NoteText } from "#shared/company-index/record.ts";
import {
  columnsOf,
  encodeSegment,
  type RowWithNotes,
  rowsOf,
  type SegmentColumns,
} from "#shared/company-index/segment.ts";
import {
  addAll,
  NewestVersions,
  type Overrides,
  type Versioned,
  type Versions,
} from "#shared/company-index/versions.ts";
import { atGeohash, cutIntoSegments, mergeSorted, type RowAtGeohash } from "#shared/company-index/write/order.ts";
import type { NewRun } from "#shared/company-index/write/publish.ts";
import type { Table } from "#shared/db/table.ts";

export interface RunToMerge {
  /** The position of the run in the list of runs. A higher number means a newer run. */
  readonly age: number;
  /** Functions that decode the segments, in geohash order. Each call decodes the segment again. */
  readonly segments: readonly (() => SegmentColumns)[];
  readonly overrides: Overrides;
  readonly looseNotes: readonly NoteText[];
}

/** Converts new rows to the form of a stored run, so that a merge can include them before they are stored. */
export function inMemory({ rows, prospects, notes, looseNotes }: NewRun, age: number): RunToMerge {
  const segments = [...cutIntoSegments(rows)].map((entries) => () => columnsOf("new rows", encodeSegment(entries)));
  return { age, segments, overrides: { prospects: sideBySide(prospects), notes: sideBySide(notes) }, looseNotes };
}

const sideBySide = (records: readonly Versioned[]): Versions => ({
  ids: Float64Array.from(records, ({ id }) => id),
  versions: Float64Array.from(records, ({ version }) => version),
});

/**
 * Merges the runs. `isOldest` is true if the index has no run that is older than these. The merge then drops deletions and version
 * overrides (which mark rows of older runs as outdated), because no older rows exist that they could hide. It also drops notes whose
 * prospects have no row in the runs. The rows of the result can be read only once.
 */
export function mergeRuns(runs: readonly RunToMerge[], isOldest: boolean): NewRun {
  const prospects = new NewestVersions();
  const notes = new NewestVersions();
  for (const { overrides, age } of runs) {
    addAll(prospects, overrides.prospects, age);
    addAll(notes, overrides.notes, age);
  }
  const { strays, present } = straysOf(runs, prospects, notes);
  return {
    rows: merged(runs, prospects, notes, strays),
    looseNotes: isOldest ? [] : [...strays].flatMap(([id, list]) => (present.has(id) ? [] : list)),
    prospects: isOldest ? [] : [...prospects],
    notes: isOldest ? [] : [...notes],
  };
}

/**
 * Finds notes that are not stored with the newest row of their prospect. Returns them by prospect id (`strays`), so that the merge can
 * store them with that row. Also returns the ids of the prospects whose newest row is in these runs (`present`).
 */
function straysOf(runs: readonly RunToMerge[], prospects: NewestVersions, notes: NewestVersions) {
  const strays = new Map<number, NoteText[]>();
  const present = new Set<number>();
  const keep = (note: NoteText, age: number): void => {
    if (notes.supersedes(note.noteId, note.version, age)) return;
    const list = strays.get(note.prospectId);
    if (list === undefined) strays.set(note.prospectId, [note]);
    else list.push(note);
  };
  for (const { looseNotes, age } of runs) for (const note of looseNotes) keep(note, age);
  for (const { segments, age } of runs) {
    for (const decode of segments) {
      for (const { row, notes: own } of rowsOf(decode())) {
        if (!prospects.supersedes(row.id, row.version, age)) present.add(row.id);
        else for (const note of own) keep(note, age);
      }
    }
  }
  return { strays, present };
}

function* merged(
  runs: readonly RunToMerge[],
  prospects: NewestVersions,
  notes: NewestVersions,
  strays: ReadonlyMap<number, readonly NoteText[]>,
): Generator<RowWithNotes> {
  for (const { row, notes: own } of mergeSorted(runs.map((run) => liveRowsOf(run, prospects, notes)))) {
    yield { row, notes: [...own, ...(strays.get(row.id) ?? [])] };
  }
}

function* liveRowsOf(
  run: RunToMerge,
  prospects: NewestVersions,
  notes: NewestVersions,
): Generator<RowAtGeohash, undefined> {
  for (const decode of run.segments) {
    for (const { row, notes: own } of rowsOf(decode())) {
      if (prospects.supersedes(row.id, row.version, run.age)) continue;
      const live = own.filter(({ noteId, version }) => !notes.supersedes(noteId, version, run.age));
      yield atGeohash({ row, notes: live });
    }
  }
  return undefined;
}

/** Reads stored runs for a merge. `runs` must be sorted from the oldest to the newest. */
export async function runsToMerge(table: Table, companyId: number, runs: readonly Run[]): Promise<RunToMerge[]> {
  const runOverrides = await readRunOverrides(table, companyId, runs);
  const toMerge: RunToMerge[] = [];
  for (const [age, run] of runs.entries()) {
    const segments = await readSegments(table, companyId, run);
    toMerge.push({ age, segments, ...(runOverrides[age] ?? noRunOverrides) });
  }
  return toMerge;
}
