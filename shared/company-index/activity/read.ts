/** Counts facts for reports: whole days by daily sums, parts of days fact by fact, and the newest from the log and unflushed entries. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { DAY_MS } from "#shared/clock.ts";
import {
  countedSince,
  dayOf,
  decoded,
  type FactState,
  factState,
  type LogRow,
  type LogWrite,
  logRow,
  logWrites,
} from "#shared/company-index/activity/log.ts";
import { type Cell, decodeCells } from "#shared/company-index/activity/sums.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { decodeFacts, decodeImported, type Fact, type ImportedFacts, identityOf } from "#shared/company-index/facts.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { QuerySpec, Reads } from "#shared/db/reads.ts";
import { requireTime } from "#shared/deadline.ts";
import { ApiError, TableBusy } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";

/** `countActivity` passes each fact once to one of these functions: alone, or as a part of a day's sums or of an import. */
export interface Counting {
  readonly cell: (cell: Cell, day: string) => void;
  readonly fact: (fact: Fact) => void;
  readonly imported: (imported: ImportedFacts) => void;
}

/** A time range in milliseconds since 1970. Both ends are included. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

export interface ActivityRead<C> {
  readonly counting: C;
  readonly since: number | null;
}

export interface HowToCount<C> {
  /** True if the stored sums may be read for whole days. If false, `Counting.cell` is never called. */
  readonly sumsSuffice: boolean;
  readonly nowMs: number;
  /** Returns a new object without any counts. It is called again if the read must be repeated. */
  readonly newCounting: () => C;
  /** Maximum bytes of the daily sums and stored facts that are read. With more, `countActivity` throws `validation_failed`. */
  readonly maxBytes?: number;
}

const TRIES = 10;

/** Counts the facts of a time range. Throws ActivityUnreadable for a damaged row, and TableBusy if flushes disturb each attempt. */
export async function countActivity<C extends Counting>(
  table: Reads,
  companyId: number,
  range: TimeRange,
  { sumsSuffice, nowMs, newCounting, maxBytes = limits.activityBytes }: HowToCount<C>,
): Promise<ActivityRead<C>> {
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const counting = newCounting();
    const found = await tryToCount(table, companyId, { range, sumsSuffice, maxBytes }, counting);
    if (found !== undefined) return { counting, since: countedSince(found.state, nowMs) };
    await sleep(20 * attempt);
  }
  throw new TableBusy(`the activity of company ${companyId} kept changing`);
}

interface Wanted extends Pick<Required<HowToCount<Counting>>, "sumsSuffice" | "maxBytes"> {
  readonly range: TimeRange;
}

/** Returns undefined if a flush has moved facts during the read, because some may then be counted twice or not at all. */
async function tryToCount(
  table: Reads,
  companyId: number,
  wanted: Wanted,
  counting: Counting,
): Promise<{ readonly state: FactState | undefined } | undefined> {
  // A fact moves from an unflushed entry to the log, and then to the sums. The reads have the same order, so that they miss no fact.
  const { head, facts: unflushed } = await readUnflushed(table, companyId);
  const { rows, state } = await readLog(table, companyId);
  const { version = 0, upTo = "" } = state ?? {};
  if (version > head.version) return undefined;
  // Skip rows with a higher version than `head`, because each of their facts is either in `unflushed` or newer than this read.
  const waiting = rows.filter((row) => row.sk > upTo && row.version <= head.version);
  countNewest(unflushed, waiting, wanted.range, counting);
  const isComplete = await countOlder(table, companyId, { version, days: [], ...state }, wanted, counting);
  return isComplete ? { state } : undefined;
}

async function readLog(table: Reads, companyId: number): Promise<{ rows: LogRow[]; state: FactState | undefined }> {
  const rows: LogRow[] = [];
  let state: FactState | undefined;
  for await (const item of table.query(activityKeys.factLog(companyId))) {
    if (item.type === "factState") state = factState(item);
    else rows.push(logRow(item));
  }
  return { rows, state };
}

/** Counts each fact once, although it may be in an unflushed entry and in several rows of the log. */
function countNewest(unflushed: readonly Fact[], rows: readonly LogRow[], range: TimeRange, counting: Counting): void {
  const seen = new Set<string>();
  for (const fact of [...unflushed, ...rows.flatMap(({ facts }) => facts)]) {
    const identity = identityOf(fact);
    if (isWithin(range, fact) && !seen.has(identity)) counting.fact(fact);
    seen.add(identity);
  }
  for (const { imported } of rows) if (imported !== undefined && isWithin(range, imported)) counting.imported(imported);
}

const isWithin = ({ from, to }: TimeRange, { at }: { readonly at: number }): boolean => at >= from && at <= to;

/** Counts the facts of stored days. Returns false if a flush is changing them: rows are then newer or older than the state row says. */
async function countOlder(
  table: Reads,
  companyId: number,
  { version, days }: Pick<FactState, "version" | "days">,
  { range, sumsSuffice, maxBytes }: Wanted,
  counting: Counting,
): Promise<boolean> {
  const whole = sumsSuffice ? wholeDays(range) : undefined;
  const single = singleDays(range, whole);
  let left = maxBytes;
  const spend = (bytes: number): void => {
    left -= bytes;
    if (left < 0) throw tooMuch();
  };
  const changed = new Set(days.filter((day) => isIn(day, whole) || single.some((some) => isIn(day, some))));
  if (whole !== undefined) {
    for await (const row of rowsOf(table, activityKeys.daySums(companyId, whole.first, whole.last), spend)) {
      if (row.version > version) return false;
      if (row.version === version) changed.delete(row.day);
      for (const cell of decoded(row.sk, () => decodeCells(row.bytes))) counting.cell(cell, row.day);
    }
  }
  for (const { first, last } of single) {
    for await (const row of rowsOf(table, activityKeys.dayFacts(companyId, first, last), spend)) {
      if (row.version > version) return false;
      if (row.version === version) changed.delete(row.day);
      if (row.type === "dayImport") {
        const imported = decoded(row.sk, () => decodeImported(row.bytes));
        if (isWithin(range, imported)) counting.imported(imported);
      } else {
        const facts = decoded(row.sk, () => decodeFacts(row.bytes));
        for (const fact of facts) if (isWithin(range, fact)) counting.fact(fact);
      }
    }
  }
  // A day is left in `changed` if its new rows are not visible yet: the rows of a transaction may become visible one after the other.
  return changed.size === 0;
}

export const DayRow = z.object({
  sk: z.string(),
  type: z.string(),
  version: z.optional(z.int()),
  bytes: z.instanceof(Uint8Array),
});
const dayKey = /^[SF]#([^#]+)#(\d+)/;

const tooMuch = (): ApiError =>
  new ApiError("validation_failed", "The report covers too much activity. Choose a shorter time range.", {
    faults: [{ parameter: "from", code: "out_of_range", message: "must be closer to `to`" }],
  });

async function* rowsOf(table: Reads, spec: QuerySpec, spend: (bytes: number) => void) {
  for await (const item of table.query(spec)) {
    const { sk, type, bytes, version } = decoded(item.sk, () => DayRow.parse(item));
    const [, day = "", number] = dayKey.exec(sk) ?? [];
    spend(bytes.length);
    requireTime();
    yield { sk, day, type, bytes, version: version ?? Number(number) };
  }
}

interface Days {
  readonly first: string;
  readonly last: string;
}

const isIn = (day: string, days: Days | undefined): boolean =>
  days !== undefined && days.first <= day && day <= days.last;

function wholeDays({ from, to }: TimeRange): Days | undefined {
  const [first, end] = [Math.ceil(from / DAY_MS), Math.floor((to + 1) / DAY_MS)];
  return first < end ? { first: dayOf(first * DAY_MS), last: dayOf((end - 1) * DAY_MS) } : undefined;
}

function singleDays({ from, to }: TimeRange, whole: Days | undefined): Days[] {
  const [first, last] = [dayOf(from), dayOf(to)];
  if (whole === undefined) return [{ first, last }];
  return [
    ...(first < whole.first ? [{ first, last: first }] : []),
    ...(last > whole.last ? [{ first: last, last }] : []),
  ];
}

/** Number of the first row from `unloggedFacts`. A flush numbers its rows from 0 and writes fewer than 900, so the numbers differ. */
const FIRST_PART = 900;

/** Returns rows with the unflushed facts that the log lacks, for exports and restores, which copy the log but not the company index. */
export async function unloggedFacts(table: Reads, companyId: number): Promise<LogWrite[]> {
  const { head, facts } = await readUnflushed(table, companyId);
  const { rows } = await readLog(table, companyId);
  const logged = new Set(rows.flatMap((row) => row.facts.map(identityOf)));
  const others = facts.filter((fact) => !logged.has(identityOf(fact)));
  return logWrites(companyId, head.version, others, FIRST_PART);
}
