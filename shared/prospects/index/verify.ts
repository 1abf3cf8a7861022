/** Compares a company index with the rows of prospects and notes during other requests. Only a difference that remains is a fault. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type IndexEntry,
  type IndexRow,
  isTombstone,
  type NoteText,
  type Records,
  type SomeRecords,
} from "#shared/company-index/record.ts";
import { type Inspection, inspectIndex, type RecordVisitor } from "#shared/company-index/repair/inspect.ts";
import type { Table } from "#shared/db/table.ts";

/** How often differing records are compared again. */
const RETRIES = 3;
const PAUSE_MS = 1_000;
/** Only this number of differing records is compared again, because the first faults are enough to find the cause. */
const MOST_COMPARED_AGAIN = 10_000;

export interface Verdict {
  readonly prospects: number;
  readonly notes: number;
  readonly segments: number;
  readonly parts: number;
  readonly unflushed: number;
  readonly faults: readonly string[];
  /** Number of differing records that were not compared again, because there are more than `MOST_COMPARED_AGAIN`. */
  readonly unexamined: number;
}

export async function verifyIndex(
  table: Table,
  records: Records,
  companyId: number,
  { pauseMs = PAUSE_MS, progress }: { readonly pauseMs?: number; readonly progress?: (prospects: number) => void } = {},
): Promise<Verdict> {
  const first = await compareAll(table, records, companyId, progress);
  let { inspection } = first;
  let mismatches: Mismatches = new Map([...first.mismatches].slice(0, MOST_COMPARED_AGAIN));
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

async function compareAll(
  table: Table,
  records: Records,
  companyId: number,
  progress?: (prospects: number) => void,
): Promise<{ inspection: Inspection; mismatches: Mismatches; prospects: number; notes: number }> {
  const index = new IndexedRecords();
  const inspection = await inspectIndex(table, companyId, index);
  index.dropNotesWithoutProspect();
  const mismatches = new Map<number, number>();
  for (const key of index.repeated.keys()) mismatches.set(key, index.records.get(key)?.prospectId ?? 0);
  let [prospects, notes] = [0, 0];
  for await (const some of records.readAll(companyId)) {
    const live = some.prospects.filter((entry) => !isTombstone(entry));
    const liveIds = new Set(live.map(({ id }) => id));
    const liveNotes = some.notes.filter(({ prospectId }) => liveIds.has(prospectId));
    for (const record of [...live, ...liveNotes]) {
      const [key, expected] = [keyOf(record), fingerprintOf(record)];
      const found = index.records.get(key);
      if (found?.hash === expected.hash && isDatedAs(found, expected)) index.records.delete(key);
      else mismatches.set(key, expected.prospectId);
    }
    prospects += live.length;
    notes += liveNotes.length;
    progress?.(prospects);
  }
  // Equal records were deleted from `index.records` above, so the remaining ones differ from their rows or have no row.
  for (const [key, { prospectId }] of index.records) mismatches.set(key, prospectId);
  return { inspection, prospects, notes, mismatches: inspection.isReadable ? mismatches : new Map() };
}

/**
 * Reads the rows before and after the index. If a row is equal in both reads, the index must be equal too. The new `mismatches` are the
 * records that still differ, or that were written during the comparison.
 */
async function compareAgain(
  table: Table,
  records: Records,
  companyId: number,
  mismatches: Mismatches,
): Promise<{ inspection: Inspection; mismatches: Mismatches; faults: string[] }> {
  const prospectIds = [...new Set(mismatches.values())];
  const noteRefs = [...mismatches].flatMap(([key, prospectId]) => (key < 0 ? [{ prospectId, noteId: -key }] : []));
  const read = async () => rowsIn(await records.readSome(companyId, prospectIds, noteRefs));
  const before = await read();
  const index = new IndexedRecords(mismatches);
  const inspection = await inspectIndex(table, companyId, index);
  index.dropNotesWithoutProspect();
  const after = await read();
  if (!inspection.isReadable) return { inspection, mismatches, faults: [] };
  const left = new Map<number, number>();
  const faults: string[] = [];
  for (const [key, prospectId] of mismatches) {
    // No search finds notes of deleted prospects, so a difference in such a note is no fault.
    if (key < 0 && typeof after.get(prospectId) !== "object") continue;
    const seen = { entry: index.records.get(key), times: index.repeated.get(key) };
    const verdict = faultOf(before.get(key), after.get(key), seen);
    if (verdict === "fine") continue;
    left.set(key, prospectId);
    if (verdict === "being written") continue;
    faults.push(`${key < 0 ? `note ${-key} of prospect` : "prospect"} ${prospectId} ${verdict}`);
  }
  return { inspection, mismatches: left, faults };
}

type RowState = Fingerprint | "deleted" | undefined;

const rowsIn = ({ prospects, notes }: SomeRecords): ReadonlyMap<number, RowState> =>
  new Map(
    [...prospects, ...notes].map((record): [number, RowState] => {
      const isDeleted = !("noteId" in record) && isTombstone(record);
      return [keyOf(record), isDeleted ? "deleted" : fingerprintOf(record)];
    }),
  );

/** Returns "fine", "being written" if the row has changed meanwhile, or the end of a sentence that describes the fault. */
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

/** The key of a note is negative, so that one map can contain prospects and notes. */
const keyOf = (record: IndexEntry | NoteText): number => ("noteId" in record ? -record.noteId : record.id);

/** Maps the key of each differing record to the id of the record's prospect. */
type Mismatches = ReadonlyMap<number, number>;

/** Stands for a record in the comparison, to save memory: a million fingerprints need about 200 MB, less than the records. */
export interface Fingerprint {
  readonly version: number;
  /** 48 bits. A JavaScript number represents integers of at most 53 bits exactly. */
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

class IndexedRecords implements RecordVisitor {
  readonly records = new Map<number, Fingerprint>();
  /** The number of occurrences of records that occur more than once. */
  readonly repeated = new Map<number, number>();
  readonly #only: ReadonlySet<number> | undefined;

  /** Also collects the prospects of the notes in `only`, because `dropNotesWithoutProspect` needs them. */
  constructor(only?: Mismatches) {
    this.#only = only && new Set([...only.keys(), ...only.values()]);
  }

  readonly prospect = (row: IndexRow): void => this.#add(row);
  readonly note = (note: NoteText): void => this.#add(note);

  #add(record: IndexRow | NoteText): void {
    const key = keyOf(record);
    if (this.#only?.has(key) === false) return;
    if (this.records.has(key)) this.repeated.set(key, (this.repeated.get(key) ?? 1) + 1);
    this.records.set(key, fingerprintOf(record));
  }

  /** The index contains notes of deleted prospects until its parts are merged, but no search finds them. */
  dropNotesWithoutProspect(): void {
    for (const [key, { prospectId }] of this.records) if (!this.records.has(prospectId)) this.records.delete(key);
  }
}
