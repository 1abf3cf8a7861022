/** Merges several parts into one. Only one segment of each part is decoded at a time, to limit the memory. */
import { at } from "#shared/at.ts";
import type { Part } from "#shared/company-index/manifest.ts";
import { readPartOverrides, readSegments } from "#shared/company-index/pieces.ts";
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
import type { NewPart } from "#shared/company-index/write/publish.ts";
import type { Table } from "#shared/db/table.ts";

export interface PartToMerge {
  /** The position of the part in the list of parts. */
  readonly age: number;
  /** In geohash order. Each call decodes the segment again. */
  readonly segments: readonly (() => SegmentColumns)[];
  readonly overrides: Overrides;
  readonly looseNotes: readonly NoteText[];
}

/** Makes a part usable for a merge before the part is stored. */
export function inMemory({ rows, prospects, notes, looseNotes }: NewPart, age: number): PartToMerge {
  const segments = [...cutIntoSegments(rows)].map((entries) => () => columnsOf("new rows", encodeSegment(entries)));
  return { age, segments, overrides: { prospects: sideBySide(prospects), notes: sideBySide(notes) }, looseNotes };
}

const sideBySide = (records: readonly Versioned[]): Versions => ({
  ids: Float64Array.from(records, ({ id }) => id),
  versions: Float64Array.from(records, ({ version }) => version),
});

/**
 * `isOldest` must be true if the oldest part is among the parts. No older rows then exist that deletions and version overrides could hide,
 * so the result contains no deletions, no version overrides, and no notes of prospects without a row. The rows of the result can be read
 * only once.
 */
export function mergeParts(parts: readonly PartToMerge[], isOldest: boolean): NewPart {
  const prospects = new NewestVersions();
  const notes = new NewestVersions();
  for (const { overrides, age } of parts) {
    addAll(prospects, overrides.prospects, age);
    addAll(notes, overrides.notes, age);
  }
  const { strays, present } = straysOf(parts, prospects, notes);
  return {
    rows: merged(parts, prospects, notes, strays),
    looseNotes: isOldest ? [] : [...strays].flatMap(([id, list]) => (present.has(id) ? [] : list)),
    prospects: isOldest ? [] : [...prospects],
    notes: isOldest ? [] : [...notes],
  };
}

/** `present`: the prospects whose newest row is in one of the parts. `strays`: the current notes that are not stored with this row. */
function straysOf(parts: readonly PartToMerge[], prospects: NewestVersions, notes: NewestVersions) {
  const strays = new Map<number, NoteText[]>();
  const present = new Set<number>();
  const keep = (note: NoteText, age: number): void => {
    if (notes.supersedes(note.noteId, note.version, age)) return;
    const list = strays.get(note.prospectId);
    if (list === undefined) strays.set(note.prospectId, [note]);
    else list.push(note);
  };
  for (const { looseNotes, age } of parts) for (const note of looseNotes) keep(note, age);
  for (const { segments, age } of parts) {
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
  parts: readonly PartToMerge[],
  prospects: NewestVersions,
  notes: NewestVersions,
  strays: ReadonlyMap<number, readonly NoteText[]>,
): Generator<RowWithNotes> {
  for (const { row, notes: own } of mergeSorted(parts.map((part) => liveRowsOf(part, prospects, notes)))) {
    yield { row, notes: [...own, ...(strays.get(row.id) ?? [])] };
  }
}

function* liveRowsOf(
  part: PartToMerge,
  prospects: NewestVersions,
  notes: NewestVersions,
): Generator<RowAtGeohash, undefined> {
  for (const decode of part.segments) {
    for (const { row, notes: own } of rowsOf(decode())) {
      if (prospects.supersedes(row.id, row.version, part.age)) continue;
      const live = own.filter(({ noteId, version }) => !notes.supersedes(noteId, version, part.age));
      yield atGeohash({ row, notes: live });
    }
  }
  return undefined;
}

/** `parts` must be sorted from the oldest to the newest. */
export async function partsToMerge(table: Table, companyId: number, parts: readonly Part[]): Promise<PartToMerge[]> {
  const partOverrides = await readPartOverrides(table, companyId, parts);
  const toMerge: PartToMerge[] = [];
  for (const [age, part] of parts.entries()) {
    const segments = await readSegments(table, companyId, part);
    toMerge.push({ age, segments, ...at(partOverrides, age) });
  }
  return toMerge;
}
