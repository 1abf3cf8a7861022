/** Reads a whole company index, passes each current record to a visitor, and reports contradictions in the index. */
import { coversZone, zoneOf } from "#shared/company-index/criteria.ts";
import { readUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Part, readManifest, type SegmentEntry } from "#shared/company-index/manifest.ts";
import { noPartOverrides, type PartOverrides, readPartOverrides, readSegments } from "#shared/company-index/pieces.ts";
import { type IndexRow, isTombstone, type NoteText } from "#shared/company-index/record.ts";
import { type RowWithNotes, rowsOf, type SegmentColumns } from "#shared/company-index/segment.ts";
import { type Delta, type FlushedVersions, flushedVersions, newestUnflushed } from "#shared/company-index/versions.ts";
import { atGeohash, byGeohash } from "#shared/company-index/write/order.ts";
import type { Table } from "#shared/db/table.ts";

/** If a fault of the index makes two copies of a record current, the visitor receives both. */
export interface RecordVisitor {
  prospect(row: IndexRow): void;
  note(note: NoteText): void;
}

export interface Inspection {
  readonly parts: number;
  readonly segments: number;
  readonly unflushed: number;
  readonly faults: readonly string[];
  readonly isReadable: boolean;
}

/** Number of segments that are read at the same time, to limit the memory. */
const PARALLEL = 4;

export const inspectIndex = (table: Table, companyId: number, visitor: RecordVisitor): Promise<Inspection> =>
  new Inspector(table, companyId, visitor).inspect();

class Inspector {
  readonly #table: Table;
  readonly #companyId: number;
  readonly #visitor: RecordVisitor;
  readonly #faults: string[] = [];

  constructor(table: Table, companyId: number, visitor: RecordVisitor) {
    this.#table = table;
    this.#companyId = companyId;
    this.#visitor = visitor;
  }

  async inspect(): Promise<Inspection> {
    const [table, companyId, faults] = [this.#table, this.#companyId, this.#faults];
    const unflushed = await this.#orFault(() => readUnflushed(table, companyId));
    const parts = unflushed && (await this.#partsOf(unflushed));
    if (unflushed === undefined || parts === undefined) {
      return { parts: 0, segments: 0, unflushed: unflushed?.keys.length ?? 0, faults, isReadable: false };
    }
    const versions = flushedVersions(await this.#overridesOf(parts));
    const newest = newestUnflushed(versions, unflushed.entries, unflushed.notes);
    const filled = await withTexts(table, companyId, newest, versions, unflushed);
    if (filled.missing > 0) faults.push(`${filled.missing} unflushed entries of company ${companyId} lack texts`);
    const delta = filled.missing > 0 ? newest : filled.delta;
    const live = liveOnly(versions, delta, this.#visitor);
    for (const [age, part] of parts.entries()) await this.#inspectPart(part, (entry) => live(entry, age));
    for (const { age, ...note } of versions.looseNotes) live({ row: undefined, notes: [note] }, age);
    visitUnflushed(delta, this.#visitor);
    faults.push(...faultsOfHead(unflushed, parts));
    const segments = parts.reduce((sum, part) => sum + part.segments.length, 0);
    return { parts: parts.length, segments, unflushed: unflushed.keys.length, faults, isReadable: true };
  }

  async #orFault<T>(read: () => Promise<T> | T): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof IndexUnreadable)) throw error;
      this.#faults.push(error.message);
      return undefined;
    }
  }

  /** Reports a fault for each part manifest that cannot be read, and then returns undefined. */
  async #partsOf({ head }: Unflushed): Promise<Part[] | undefined> {
    const parts: Part[] = [];
    for (const id of head.manifest) {
      const read = await this.#orFault(() => readManifest(this.#table, this.#companyId, [id]));
      parts.push(...(read?.parts ?? []));
    }
    return parts.length === head.manifest.length ? parts : undefined;
  }

  async #overridesOf(parts: readonly Part[]): Promise<PartOverrides[]> {
    const all: PartOverrides[] = [];
    for (const part of parts) {
      const read = await this.#orFault(() => readPartOverrides(this.#table, this.#companyId, [part]));
      all.push(...(read ?? [noPartOverrides]));
    }
    return all;
  }

  async #inspectPart(part: Part, keep: (entry: RowWithNotes) => void): Promise<void> {
    const faults = this.#faults;
    const rows = part.segments.reduce((sum, segment) => sum + segment.rows, 0);
    if (rows !== part.rows) faults.push(`part ${part.id} claims ${part.rows} rows, but its segments claim ${rows}`);
    let last: RowWithNotes | undefined;
    for (let from = 0; from < part.segments.length; from += PARALLEL) {
      const some = part.segments.slice(from, from + PARALLEL);
      const reads = await Promise.all(
        some.map((entry) => this.#orFault(() => readSegments(this.#table, this.#companyId, { segments: [entry] }))),
      );
      for (const [i, entry] of some.entries()) {
        const decode = reads[i]?.[0];
        const columns = decode && (await this.#orFault(decode));
        if (columns === undefined) continue;
        const lengths = lengthsOf(columns);
        if (lengths.some((length) => length !== entry.rows))
          faults.push(`segment ${entry.id} claims ${entry.rows} rows, but its columns hold ${lengths.join(", ")}`);
        if (new Set(lengths).size > 1) continue;
        const own = [...rowsOf(columns)];
        faults.push(...faultsOfZone(entry, own), ...faultsOfOrder(entry, last, own));
        last = own.at(-1) ?? last;
        for (const one of own) keep(one);
      }
    }
  }
}

function faultsOfHead({ head }: Unflushed, parts: readonly Part[]): string[] {
  const ids = [...parts.map(({ id }) => id), ...parts.flatMap(({ segments }) => segments.map(({ id }) => id))];
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  return twice.map((id) => `version ${head.version} of the index contains ${id} twice`);
}

/** Passes records to the visitor, but not those of which a newer part or an unflushed entry has a newer version. */
function liveOnly({ prospectVersions, noteVersions }: FlushedVersions, delta: Delta, visitor: RecordVisitor) {
  return ({ row, notes }: { row: IndexRow | undefined; notes: readonly NoteText[] }, age: number): void => {
    if (row !== undefined && !delta.prospects.has(row.id) && !prospectVersions.supersedes(row.id, row.version, age)) {
      visitor.prospect(row);
    }
    for (const note of notes) {
      const { noteId, version } = note;
      if (!delta.notes.has(noteId) && !noteVersions.supersedes(noteId, version, age)) visitor.note(note);
    }
  };
}

function visitUnflushed({ prospects, notes }: Delta, visitor: RecordVisitor): void {
  for (const entry of prospects.values()) if (!isTombstone(entry)) visitor.prospect(entry);
  for (const { text, ...note } of notes.values()) if (text !== null) visitor.note({ ...note, text });
}

const lengthsOf = ({ main, geo, text }: SegmentColumns) => [main.count, geo.lat.length, text.digitStarts.length - 1];

function* faultsOfZone({ id, zone }: SegmentEntry, own: readonly RowWithNotes[]): Generator<string> {
  if (own.length > 0 && !coversZone(zone, zoneOf(own.map(({ row }) => row)))) {
    yield `the zone map of segment ${id} does not cover its rows`;
  }
}

function* faultsOfOrder(
  { id }: SegmentEntry,
  last: RowWithNotes | undefined,
  own: readonly RowWithNotes[],
): Generator<string> {
  let before = last === undefined ? undefined : atGeohash(last);
  for (const entry of own) {
    const next = atGeohash(entry);
    if (before !== undefined && byGeohash(before, next) >= 0) {
      yield `segment ${id}: prospect ${next.id} is out of order`;
      return;
    }
    before = next;
  }
}
