/** Compares a company index with the company's rows, while other requests read and write. Only a difference that remains is a fault. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type IndexEntry,
  type IndexRow,
  isTombstone,
  type NoteRef,
  type NoteText,
  type Records,
  type SomeRecords,
} from "#shared/company-index/record.ts";
import { type Inspection, inspectIndex, type RecordVisitor } from "#shared/company-index/repair/inspect.ts";
import type { Table } from "#shared/db/table.ts";

/** How often differing records are compared again. */
const RETRIES = 3;
const PAUSE_MS = 1_000;
/** Maximum number of records that are compared again. The first faults are enough to find the cause. */
const MOST_COMPARED_AGAIN = 10_000;

export interface VerifyOptions {
  readonly pauseMs?: number;
  readonly progress?: (prospects: number) => void;
}

export interface Verdict {
  readonly prospects: number;
  readonly notes: number;
  readonly segments: number;
  readonly parts: number;
  readonly unflushed: number;
  readonly faults: readonly string[];
  /** Number of differing records beyond `MOST_COMPARED_AGAIN`. */
  readonly unexamined: number;
}

export async function verifyIndex(
  table: Table,
  records: Records,
  companyId: number,
  { pauseMs = PAUSE_MS, progress = () => undefined }: VerifyOptions = {},
): Promise<Verdict> {
  const first = await compareAll(table, records, companyId, progress);
  let { inspection } = first;
  let mismatches = first.mismatches.first(MOST_COMPARED_AGAIN);
  const unexamined = first.mismatches.size - mismatches.size;
  let faults: string[] = [];
  for (let attempt = 0; attempt < RETRIES && mismatches.size + inspection.faults.length > 0; attempt++) {
    await sleep(pauseMs);
    ({ inspection, mismatches, faults } = await compareAgain(table, records, companyId, mismatches));
  }
  const { parts, segments, unflushed } = inspection;
  const { prospects, notes } = first;
  return { prospects, notes, segments, parts, unflushed, faults: [...inspection.faults, ...faults], unexamined };
}

interface FirstComparison {
  readonly inspection: Inspection;
  readonly mismatches: Mismatches;
  readonly prospects: number;
  readonly notes: number;
}

async function compareAll(
  table: Table,
  records: Records,
  companyId: number,
  progress: (prospects: number) => void,
): Promise<FirstComparison> {
  const index = new IndexedRecords();
  const inspection = await inspectIndex(table, companyId, index);
  index.dropNotesWithoutProspect();
  const mismatches = new Mismatches();
  for (const id of index.repeated.prospects.keys()) mismatches.prospects.add(id);
  for (const id of index.repeated.notes.keys()) mismatches.notes.set(id, index.notes.get(id)?.prospectId ?? 0);
  let [prospects, notes] = [0, 0];
  for await (const some of records.readAll(companyId)) {
    const live = some.prospects.filter((entry) => !isTombstone(entry));
    const liveIds = new Set(live.map(({ id }) => id));
    const liveNotes = some.notes.filter(({ prospectId }) => liveIds.has(prospectId));
    for (const row of live)
      if (!removeIfEqual(index.prospects, row.id, fingerprintOf(row))) mismatches.prospects.add(row.id);
    for (const note of liveNotes) {
      if (!removeIfEqual(index.notes, note.noteId, fingerprintOf(note)))
        mismatches.notes.set(note.noteId, note.prospectId);
    }
    prospects += live.length;
    notes += liveNotes.length;
    progress(prospects);
  }
  for (const id of index.prospects.keys()) mismatches.prospects.add(id);
  for (const [id, { prospectId }] of index.notes) mismatches.notes.set(id, prospectId);
  return { inspection, prospects, notes, mismatches: inspection.isReadable ? mismatches : new Mismatches() };
}

/** Removes a record with the expected fingerprint from `seen`. The records that remain at the end differ from their rows or have no row. */
function removeIfEqual(seen: Map<number, Fingerprint>, id: number, expected: Fingerprint): boolean {
  const entry = seen.get(id);
  const isEqual = entry !== undefined && entry.hash === expected.hash && isDatedAs(entry, expected);
  if (isEqual) seen.delete(id);
  return isEqual;
}

interface NextComparison {
  readonly inspection: Inspection;
  /** Records that still differ, or that were written during the comparison. */
  readonly mismatches: Mismatches;
  readonly faults: string[];
}

/** Reads the rows before and after the index. If a row is equal in both reads, the index must have the same content. */
async function compareAgain(
  table: Table,
  records: Records,
  companyId: number,
  mismatches: Mismatches,
): Promise<NextComparison> {
  const read = () => records.readSome(companyId, mismatches.prospectIds(), mismatches.noteLocators());
  const before = rowsIn(await read());
  const index = new IndexedRecords(mismatches);
  const inspection = await inspectIndex(table, companyId, index);
  index.dropNotesWithoutProspect();
  const after = rowsIn(await read());
  const left = new Mismatches();
  if (!inspection.isReadable) return { inspection, mismatches, faults: [] };
  const faults: string[] = [];
  for (const id of mismatches.prospects) {
    const seen = { entry: index.prospects.get(id), times: index.repeated.prospects.get(id) };
    const verdict = faultOf(before.prospects.get(id), after.prospects.get(id), seen);
    if (verdict !== "fine") left.prospects.add(id);
    if (verdict !== "fine" && verdict !== "being written") faults.push(`prospect ${id} ${verdict}`);
  }
  for (const [id, prospectId] of mismatches.notes) {
    // No search finds notes of deleted prospects.
    if (typeof after.prospects.get(prospectId) !== "object") continue;
    const seen = { entry: index.notes.get(id), times: index.repeated.notes.get(id) };
    const verdict = faultOf(before.notes.get(id), after.notes.get(id), seen);
    if (verdict !== "fine") left.notes.set(id, prospectId);
    if (verdict !== "fine" && verdict !== "being written")
      faults.push(`note ${id} of prospect ${prospectId} ${verdict}`);
  }
  return { inspection, mismatches: left, faults };
}

type RowState = Fingerprint | "deleted" | undefined;

function rowsIn({ prospects, notes }: SomeRecords) {
  return {
    prospects: new Map<number, RowState>(
      prospects.map((entry) => [entry.id, isTombstone(entry) ? "deleted" : fingerprintOf(entry)]),
    ),
    notes: new Map<number, RowState>(notes.map((note) => [note.noteId, fingerprintOf(note)])),
  };
}

/** Returns "fine", "being written" if the row has changed during the comparison, or the end of a sentence that describes the fault. */
function faultOf(
  before: RowState,
  after: RowState,
  { entry, times }: { entry: Fingerprint | undefined; times: number | undefined },
): string {
  const isSame =
    typeof before === "object" && typeof after === "object" ? before.hash === after.hash : before === after;
  if (!isSame) return "being written";
  if (times !== undefined) return `is in the index ${times} times`;
  if (typeof after !== "object") {
    if (entry === undefined) return "fine";
    return after === "deleted" ? "is deleted but still in the index" : "has no row but is in the index";
  }
  if (entry === undefined) return "is missing from the index";
  if (entry.version !== after.version)
    return `has version ${entry.version} in the index and ${after.version} in its row`;
  if (entry.hash !== after.hash) return "has different content in the index and in its row";
  return isDatedAs(entry, after) ? "fine" : "has another time of its last change in the index than in its row";
}

class Mismatches {
  readonly prospects = new Set<number>();
  /** The ids of notes, each with the id of its prospect. */
  readonly notes = new Map<number, number>();

  get size(): number {
    return this.prospects.size + this.notes.size;
  }

  noteLocators(): NoteRef[] {
    return [...this.notes].map(([noteId, prospectId]) => ({ prospectId, noteId }));
  }

  prospectIds(): number[] {
    return [...new Set([...this.prospects, ...this.notes.values()])];
  }

  first(count: number): Mismatches {
    const some = new Mismatches();
    for (const id of this.prospects) if (some.size < count) some.prospects.add(id);
    for (const [id, prospectId] of this.notes) if (some.size < count) some.notes.set(id, prospectId);
    return some;
  }
}

/** A million fingerprints need about 200 MB, less than the records. */
export interface Fingerprint {
  readonly version: number;
  /** 48 bits, because a JavaScript number is exact only up to 53. */
  readonly hash: number;
  readonly prospectId: number;
  /** Undefined for notes. */
  readonly updatedAt: number | undefined;
}

const isDatedAs = (entry: Fingerprint, row: Fingerprint): boolean =>
  entry.updatedAt === undefined || entry.updatedAt === row.updatedAt;

function fingerprintOf(record: IndexEntry | NoteText): Fingerprint {
  const { updatedAt, ...content } = { updatedAt: undefined, ...record };
  return {
    version: record.version,
    hash: createHash("sha1").update(canonical(content)).digest().readUIntBE(0, 6),
    prospectId: "noteId" in record ? record.prospectId : record.id,
    updatedAt,
  };
}

/** The fields are sorted, so that equal records have equal JSON. */
const canonical = (record: object): string => JSON.stringify(Object.entries(record).sort());

/** Collects fingerprints of all records in the index, or only of the records in `only`. */
class IndexedRecords implements RecordVisitor {
  readonly prospects = new Map<number, Fingerprint>();
  readonly notes = new Map<number, Fingerprint>();
  /** Records that occur more than once, with the number of occurrences. */
  readonly repeated = { prospects: new Map<number, number>(), notes: new Map<number, number>() };
  readonly #only: { readonly prospects: ReadonlySet<number>; readonly notes: ReadonlyMap<number, number> } | undefined;

  constructor(only?: Mismatches) {
    this.#only = only === undefined ? undefined : { prospects: new Set(only.prospectIds()), notes: only.notes };
  }

  prospect(row: IndexRow): void {
    if (this.#only?.prospects.has(row.id) === false) return;
    if (this.prospects.has(row.id)) countUp(this.repeated.prospects, row.id);
    this.prospects.set(row.id, fingerprintOf(row));
  }

  note(note: NoteText): void {
    if (this.#only?.notes.has(note.noteId) === false) return;
    if (this.notes.has(note.noteId)) countUp(this.repeated.notes, note.noteId);
    this.notes.set(note.noteId, fingerprintOf(note));
  }

  /** The index contains notes of deleted prospects until its parts are merged, but no search finds them. */
  dropNotesWithoutProspect(): void {
    for (const [id, { prospectId }] of this.notes) if (!this.prospects.has(prospectId)) this.notes.delete(id);
  }
}

const countUp = (counts: Map<number, number>, id: number): void => {
  counts.set(id, (counts.get(id) ?? 1) + 1);
};
