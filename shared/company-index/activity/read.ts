/**
 * Counts what the users of a company have done in a time range, for activity reports. A fact is one thing that a user has done. Whole days
 * are counted from stored sums, and the rest of the range from stored single facts. The newest facts are not in the sums yet. They come
 * from the activity log, and from entries that no flush has moved into the stored search index yet.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
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
  MS_PER_DAY,
} from "#shared/company-index/activity/log.ts";
import { type Cell, decodeCells } from "#shared/company-index/activity/sums.ts";
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import {
  decodeFacts,
  decodeImported,
  type Fact,
  factsOfProspect,
  type ImportedFacts,
  identityOf,
} from "#shared/company-index/facts.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import { isTombstone } from "#shared/company-index/record.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { QuerySpec, Reads } from "#shared/db/reads.ts";
import { ApiError, TableBusy } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";

/**
 * The functions that receive the facts to count. `countActivity` passes each fact to only one of them: to `fact` as a single fact, to
 * `cell` as a part of a day's sums, or to `imported` as a part of an import.
 */
export interface Counting {
  /** The counts of one user and one status on a whole day. */
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
  /**
   * From this time on (in milliseconds since 1970), every fact (thing that a user has done) is counted. Null if all facts of the company
   * are counted.
   */
  readonly since: number | null;
}

export interface HowToCount<C> {
  /** True if the stored sums may be read for whole days. If false, single facts are read, and `Counting.cell` is never called. */
  readonly sumsSuffice: boolean;
  readonly nowMs: number;
  /** Returns a new object without any counts. It is called again if the read must be repeated. */
  readonly newCounting: () => C;
  readonly maxBytes?: number;
}

const TRIES = 10;

/**
 * Counts the activity in the range. Throws `validation_failed` if the report would read more than `maxBytes`, ActivityUnreadable if a row
 * is damaged, and TableBusy if flushes change the sums during each of the attempts.
 */
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

interface Found {
  readonly head: Head;
  readonly state: FactState | undefined;
}

/**
 * Tries to count. Returns undefined if a flush has moved facts from the log into the sums during the read, because some facts may then be
 * counted twice or not at all.
 */
async function tryToCount(
  table: Reads,
  companyId: number,
  wanted: Wanted,
  counting: Counting,
): Promise<Found | undefined> {
  // A fact is first in an unflushed entry (recent change) of the search index, then in the log, and then in the sums. The reads have the
  // same order, so that they do not miss a fact that moves meanwhile.
  const { head, facts: unflushed } = await readUnflushedFacts(table, companyId);
  const { rows, state } = await readLog(table, companyId);
  const { version = 0, upTo = "" } = state ?? {};
  if (version > head.version) return undefined;
  // A row of the log with a higher version than `head` was added after the unflushed entries were read. The row is skipped, because each of
  // its facts is either in `unflushed` or newer than this read.
  const waiting = rows.filter((row) => row.sk > upTo && row.version <= head.version);
  countNewest(unflushed, waiting, wanted.range, counting);
  const isComplete = await countOlder(table, companyId, { version, days: [], ...state }, wanted, counting);
  return isComplete ? { head, state } : undefined;
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

/**
 * Counts the facts that are not in the daily sums yet. A fact may be both in an unflushed entry (recent change) and in several rows of the
 * log, but it is counted once.
 */
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

/**
 * Counts the facts that are in the sums. `version` and `days` come from the state row: the version of the search index after the last
 * change of the sums, and the days that this change wrote. Returns false if the stored sums and facts of a day are newer or older than the
 * state row says, because a flush changes them at this moment.
 */
async function countOlder(
  table: Reads,
  companyId: number,
  { version, days }: Pick<FactState, "version" | "days">,
  { range, sumsSuffice, maxBytes }: Wanted,
  counting: Counting,
): Promise<boolean> {
  const whole = sumsSuffice ? wholeDays(range) : undefined;
  const single = singleDays(range, whole);
  const budget = new Budget(maxBytes);
  const changed = new Set(days.filter((day) => isIn(day, whole) || single.some((some) => isIn(day, some))));
  if (whole !== undefined) {
    for await (const row of rowsOf(table, activityKeys.daySums(companyId, whole.first, whole.last), budget)) {
      if (row.version > version) return false;
      if (row.version === version) changed.delete(row.day);
      for (const cell of decoded(row.sk, () => decodeCells(row.bytes))) counting.cell(cell, row.day);
    }
  }
  for (const { first, last } of single) {
    for await (const row of rowsOf(table, activityKeys.dayFacts(companyId, first, last), budget)) {
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
  // At first, `changed` contains the days that the last change of the sums wrote. A day that is left has no visible row of this change yet,
  // because the rows of a transaction may become visible one after the other.
  return changed.size === 0;
}

export const DayRow = z.object({
  sk: z.string(),
  type: z.string(),
  version: z.optional(z.int()),
  bytes: z.instanceof(Uint8Array),
});
const dayKey = /^[SF]#([^#]+)#(\d+)/;

/** Limits the bytes that a report reads. `spend` throws when the limit is exceeded. */
class Budget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  spend(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw tooMuch();
  }
}

const tooMuch = (): ApiError =>
  new ApiError("validation_failed", "The report covers too much activity. Choose a shorter time range.", {
    faults: [{ parameter: "from", code: "out_of_range", message: "must be closer to `to`" }],
  });

async function* rowsOf(table: Reads, spec: QuerySpec, budget: Budget) {
  for await (const item of table.query(spec)) {
    const { sk, type, bytes, version } = decoded(item.sk, () => DayRow.parse(item));
    const [, day = "", number] = dayKey.exec(sk) ?? [];
    budget.spend(bytes.length);
    yield { sk, day, type, bytes, version: version ?? Number(number) };
  }
}

interface Days {
  readonly first: string;
  readonly last: string;
}

const isIn = (day: string, days: Days | undefined): boolean =>
  days !== undefined && days.first <= day && day <= days.last;

/** Returns the days (UTC) that are completely in the range. */
function wholeDays({ from, to }: TimeRange): Days | undefined {
  const [first, end] = [Math.ceil(from / MS_PER_DAY), Math.floor((to + 1) / MS_PER_DAY)];
  return first < end ? { first: dayOf(first * MS_PER_DAY), last: dayOf((end - 1) * MS_PER_DAY) } : undefined;
}

/** Returns the days that are only partly in the range. If `whole` is undefined, returns all days of the range. */
function singleDays({ from, to }: TimeRange, whole: Days | undefined): Days[] {
  const [first, last] = [dayOf(from), dayOf(to)];
  if (whole === undefined) return [{ first, last }];
  return [
    ...(first < whole.first ? [{ first, last: first }] : []),
    ...(last > whole.last ? [{ first: last, last }] : []),
  ];
}

/**
 * The number that the first row from `unloggedFacts` gets. The sort key of each row of the activity log contains a number. A flush numbers
 * its rows from 0 and writes fewer than 900, so the rows of `unloggedFacts` overwrite none of them.
 */
const FIRST_PART = 900;

/**
 * Returns rows of the activity log with those facts of unflushed entries (recent changes) that the log does not contain yet. Exports and
 * restores use it, because they copy the log but not the search index.
 */
export async function unloggedFacts(table: Reads, companyId: number): Promise<LogWrite[]> {
  const { head, facts } = await readUnflushedFacts(table, companyId);
  const { rows } = await readLog(table, companyId);
  const logged = new Set(rows.flatMap((row) => row.facts.map(identityOf)));
  const others = facts.filter((fact) => !logged.has(identityOf(fact)));
  return logWrites(companyId, head.version, others, FIRST_PART);
}

/** The unflushed entries of a company's search index (see delta.ts), and the facts in these entries. */
export interface UnflushedFacts extends Unflushed {
  readonly facts: readonly Fact[];
}

export async function readUnflushedFacts(table: Reads, companyId: number): Promise<UnflushedFacts> {
  const facts: Fact[] = [];
  const unflushed = await readUnflushed(table, companyId, {
    prospect: (entry, item) => {
      if (!isTombstone(entry)) facts.push(...factsOfProspect(entry, item, item.appointment?.id));
    },
    note: ({ prospectId, noteId }, { by, createdAt, at = createdAt }) => {
      if (by === undefined || at === undefined) return;
      facts.push({ kind: "note", userId: by, at, statusId: null, prospectId, record: noteId });
    },
  });
  return { ...unflushed, facts };
}
