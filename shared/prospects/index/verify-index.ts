/**
 * Compares a company's index with its rows, record by record, while reads and writes go on. What differs may have been
 * written meanwhile: it is looked at again, and only what stays is a fault.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Inspection, inspectIndex } from "#shared/company-index/inspect.ts";
import type { Records, SomeRecords } from "#shared/company-index/records.ts";
import { isTombstone } from "#shared/company-index/row.ts";
import type { Table } from "#shared/db/table.ts";
import { type Sighting, Sightings, Suspects, sightingOf } from "#shared/prospects/index/index-sightings.ts";

/** Looks after the first one. */
const LOOKS = 3;
const PAUSE_MS = 1_000;
/** Records that are looked at again: where more differ, the first faults say what is the matter. */
const LOOKED_AT_AGAIN = 10_000;

export interface VerifyOptions {
  readonly pauseMs?: number;
  /** Is told how many prospects have been compared. */
  readonly progress?: (prospects: number) => void;
}

export interface Verdict {
  /** Rows that are not deleted. */
  readonly prospects: number;
  readonly notes: number;
  readonly segments: number;
  readonly runs: number;
  readonly unflushed: number;
  /** Each as a sentence. */
  readonly faults: readonly string[];
  /** Records that differed and were not looked at again, for there were too many. */
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
  let suspects = first.suspects.first(LOOKED_AT_AGAIN);
  const unexamined = first.suspects.size - suspects.size;
  let faults: string[] = [];
  for (let look = 0; look < LOOKS && suspects.size + inspection.faults.length > 0; look++) {
    await sleep(pauseMs);
    ({ inspection, suspects, faults } = await lookAgain(table, records, companyId, suspects));
  }
  const { runs, segments, unflushed } = inspection;
  const { prospects, notes } = first;
  return { prospects, notes, segments, runs, unflushed, faults: [...inspection.faults, ...faults], unexamined };
}

interface FirstLook {
  readonly inspection: Inspection;
  readonly suspects: Suspects;
  readonly prospects: number;
  readonly notes: number;
}

async function compareAll(
  table: Table,
  records: Records,
  companyId: number,
  progress: (prospects: number) => void,
): Promise<FirstLook> {
  const index = new Sightings();
  const inspection = await inspectIndex(table, companyId, index);
  index.forgetNotesOfNobody();
  const suspects = new Suspects();
  for (const id of index.repeated.prospects.keys()) suspects.prospects.add(id);
  for (const id of index.repeated.notes.keys()) suspects.notes.set(id, index.notes.get(id)?.prospectId ?? 0);
  let [prospects, notes] = [0, 0];
  for await (const some of records.readAll(companyId)) {
    const live = some.prospects.filter((entry) => !isTombstone(entry));
    const liveIds = new Set(live.map(({ id }) => id));
    const liveNotes = some.notes.filter(({ prospectId }) => liveIds.has(prospectId));
    for (const row of live) if (!takeEqual(index.prospects, row.id, sightingOf(row))) suspects.prospects.add(row.id);
    for (const note of liveNotes) {
      if (!takeEqual(index.notes, note.noteId, sightingOf(note))) suspects.notes.set(note.noteId, note.prospectId);
    }
    prospects += live.length;
    notes += liveNotes.length;
    progress(prospects);
  }
  for (const id of index.prospects.keys()) suspects.prospects.add(id);
  for (const [id, { prospectId }] of index.notes) suspects.notes.set(id, prospectId);
  return { inspection, prospects, notes, suspects: inspection.isReadable ? suspects : new Suspects() };
}

/** What is left in the end stands in the index alone, or differs. */
function takeEqual(seen: Map<number, Sighting>, id: number, expected: Sighting): boolean {
  const isEqual = seen.get(id)?.print === expected.print;
  if (isEqual) seen.delete(id);
  return isEqual;
}

interface OtherLook {
  readonly inspection: Inspection;
  /** Those that still differ, or were written just now. */
  readonly suspects: Suspects;
  readonly faults: string[];
}

/** The rows are read before the index and after it: where they are the same, the index must say so too. */
async function lookAgain(table: Table, records: Records, companyId: number, suspects: Suspects): Promise<OtherLook> {
  const read = () => records.readSome(companyId, suspects.prospectIds(), suspects.notePlaces());
  const before = rowsIn(await read());
  const index = new Sightings(suspects);
  const inspection = await inspectIndex(table, companyId, index);
  index.forgetNotesOfNobody();
  const after = rowsIn(await read());
  const left = new Suspects();
  if (!inspection.isReadable) return { inspection, suspects, faults: [] };
  const faults: string[] = [];
  for (const id of suspects.prospects) {
    const seen = { entry: index.prospects.get(id), times: index.repeated.prospects.get(id) };
    const verdict = judge(before.prospects.get(id), after.prospects.get(id), seen);
    if (verdict !== "fine") left.prospects.add(id);
    if (verdict !== "fine" && verdict !== "being written") faults.push(`prospect ${id} ${verdict}`);
  }
  for (const [id, prospectId] of suspects.notes) {
    // Of a prospect that is deleted, no note is found; what the index says of the prospect itself has been judged.
    if (typeof after.prospects.get(prospectId) !== "object") continue;
    const seen = { entry: index.notes.get(id), times: index.repeated.notes.get(id) };
    const verdict = judge(before.notes.get(id), after.notes.get(id), seen);
    if (verdict !== "fine") left.notes.set(id, prospectId);
    if (verdict !== "fine" && verdict !== "being written")
      faults.push(`note ${id} of prospect ${prospectId} ${verdict}`);
  }
  return { inspection, suspects: left, faults };
}

/** A row as it was seen; without a sighting it is deleted. */
type RowSeen = Sighting | "deleted" | undefined;

function rowsIn({ prospects, notes }: SomeRecords) {
  return {
    prospects: new Map<number, RowSeen>(
      prospects.map((entry) => [entry.id, isTombstone(entry) ? "deleted" : sightingOf(entry)]),
    ),
    notes: new Map<number, RowSeen>(notes.map((note) => [note.noteId, sightingOf(note)])),
  };
}

/** What is the matter, as the end of a sentence; "fine" and "being written" are no faults. */
function judge(
  before: RowSeen,
  after: RowSeen,
  { entry, times }: { entry: Sighting | undefined; times: number | undefined },
): string {
  const isSame =
    typeof before === "object" && typeof after === "object" ? before.print === after.print : before === after;
  if (!isSame) return "being written";
  if (times !== undefined) return `stands ${times} times in the index`;
  if (typeof after !== "object") {
    if (entry === undefined) return "fine";
    return after === "deleted" ? "is deleted and stands in the index" : "has no row and stands in the index";
  }
  if (entry === undefined) return "is missing from the index";
  if (entry.version !== after.version)
    return `has version ${entry.version} in the index and ${after.version} in its row`;
  return entry.print === after.print ? "fine" : "has another content in the index than in its row";
}
