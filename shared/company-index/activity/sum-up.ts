/**
 * Moves facts from the log of a company's activity into the daily sums. A fact is one thing that a user has done, and the daily sums count
 * facts by user, status and kind. Some flushes of the search index do this, in the transaction that updates the head row of the index. If
 * two flushes run at the same time, only one of these transactions succeeds. A row of the log is therefore added only once.
 */

import {
  ActivityUnreadable,
  countedSince,
  dayOf,
  decoded,
  type FactState,
  type LogRow,
  logRow,
  logWrites,
  nextState,
  readState,
} from "#shared/company-index/activity/log.ts";
import type { UnflushedFacts } from "#shared/company-index/activity/read.ts";
import { type Cell, decodeCells, encodeCells, Sums } from "#shared/company-index/activity/sums.ts";
import { encodeFacts, encodeImported, type Fact, type ImportedFacts, identityOf } from "#shared/company-index/facts.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { errorFields, log } from "#shared/log.ts";

/**
 * Each flush increases the version of the head row. After at least this number of versions, a flush adds the facts in the log to the daily
 * sums. A higher number makes reports slower, because a report reads all rows of the log that are not in the sums yet.
 */
export const VERSIONS_PER_SUM = 32;
/**
 * Approximate bytes that one flush adds to the log. Adding facts to the sums of a day writes all sums of this day again. To limit these
 * writes, a flush waits until the log has grown by about half the bytes that the last change of the sums wrote. It estimates the growth
 * from the number of flushes since then and this constant.
 */
const BYTES_PER_VERSION = 512;
/**
 * One transaction adds several rows of the log to the sums. It takes no further row if it already has more than `BYTES_AT_ONCE` bytes, or
 * if it would change the sums of more than `DAYS_AT_ONCE` days. DynamoDB limits a transaction to 4 MB and 100 rows.
 */
const BYTES_AT_ONCE = 1_000_000;
const DAYS_AT_ONCE = 30;
/**
 * Maximum number of cells in a row of sums, and maximum number of facts in a row of single facts. A cell contains the counts of one user
 * and one status. DynamoDB limits a row to 400 KB.
 */
const CELLS_PER_ROW = 20_000;
const FACTS_PER_ROW = 20_000;

/** The writes of facts and sums that a flush adds to its transaction, and the keys of the log's rows that it must delete afterwards. */
export interface Activity {
  readonly writes: readonly Write[];
  readonly done: readonly Key[];
}

export interface WhenToSum {
  readonly nowMs: number;
  /**
   * Minimum number of versions of the search index between two additions to the daily sums, usually `VERSIONS_PER_SUM`. Each flush
   * increases the version by 1.
   */
  readonly sumAfter: number;
}

/**
 * Returns the writes with which a flush adds the facts of the unflushed entries (recent changes) to the activity log. If enough flushes
 * have passed since the last change of the daily sums, it also returns the writes that add older facts to the sums.
 */
export async function activityOf(
  table: Reads,
  companyId: number,
  { head, facts }: UnflushedFacts,
  { nowMs, sumAfter }: WhenToSum,
): Promise<Activity> {
  const own = logWrites(companyId, head.version + 1, facts);
  const found = await unlessDamaged(companyId, async () => ({ state: await readState(table, companyId) }));
  if (found === undefined) return { writes: own, done: [] };
  const { state } = found;
  const since = countedSince(state, nowMs);
  const known: FactState = { version: 0, upTo: "", days: [], bytes: 0, ...state, since };
  if (head.version - known.version >= Math.max(sumAfter, Math.floor(known.bytes / BYTES_PER_VERSION / 2))) {
    const summed = await unlessDamaged(companyId, () => sumUp(table, companyId, head, facts, known));
    if (summed !== undefined && summed.writes.length > 0) {
      return { writes: [...own, ...summed.writes], done: summed.done };
    }
  }
  return { writes: state?.since === since ? own : [...own, nextState(companyId, known)], done: [] };
}

/** Returns undefined if a row of the activity is damaged. A damaged row must not stop the flushes of the search index. */
async function unlessDamaged<T>(companyId: number, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ActivityUnreadable)) throw error;
    log.error("activity not summed up", { companyId, ...errorFields(error) });
    return undefined;
  }
}

/**
 * Returns the writes that add the oldest rows of the activity log to the daily sums, and the keys of the rows to delete. These keys include
 * rows that an earlier flush has added to the sums but not deleted. `writes` is empty if the log has no row to add.
 */
async function sumUp(
  table: Reads,
  companyId: number,
  head: Head,
  unflushed: readonly Fact[],
  state: FactState,
): Promise<Activity> {
  const batch = new Batch(table, companyId);
  const done: Key[] = [];
  let { upTo } = state;
  const { pk } = activityKeys.factLog(companyId);
  async function* newRows(): AsyncGenerator<LogRow> {
    for await (const item of table.query({ pk, begins: "A#", pageItems: VERSIONS_PER_SUM })) {
      const row = logRow(item);
      if (row.sk > state.upTo) yield row;
      else done.push({ pk, sk: row.sk });
    }
  }
  for await (const row of withoutRepeated(newRows(), unflushed)) {
    if (!(await batch.add(row))) break;
    upTo = row.sk;
    done.push({ pk, sk: row.sk });
  }
  if (upTo === state.upTo) return { writes: [], done };
  const version = head.version + 1;
  const writes = batch.writes(version);
  const bytes = writes.reduce((sum, { put }) => sum + put.bytes.length, 0);
  return { writes: [...writes, nextState(companyId, { ...state, version, upTo, days: batch.days, bytes })], done };
}

/** The rows that one flush has added to the activity log, and the rows of imports that come after them in the log. */
interface FlushedRows {
  readonly version: number;
  readonly rows: LogRow[];
}

/**
 * Yields the rows of the log in the same order. Omits a fact from the rows of a flush if the next flush has logged the same fact again.
 * This happens if a flush is killed after it has logged the facts of its entries and before it deletes the entries. The copies of a fact
 * are therefore always in rows of successive flushes, and only the last copy is counted. After the last row, the next flush is the present
 * one, which logs the facts in `unflushed`.
 */
async function* withoutRepeated(
  rows: AsyncIterable<LogRow>,
  unflushed: readonly Fact[],
): AsyncGenerator<LogRow, void, undefined> {
  let before: FlushedRows | undefined;
  let last: FlushedRows | undefined;
  for await (const row of rows) {
    if (last !== undefined && (row.facts.length === 0 || row.version === last.version)) {
      last.rows.push(row);
      continue;
    }
    if (before !== undefined) yield* without(factsOf(last), before);
    before = last;
    last = { version: row.version, rows: [row] };
  }
  if (before !== undefined) yield* without(factsOf(last), before);
  if (last !== undefined) yield* without(unflushed, last);
}

const factsOf = (flushed: FlushedRows | undefined): Fact[] => (flushed?.rows ?? []).flatMap(({ facts }) => facts);

function without(repeated: readonly Fact[], { rows }: FlushedRows): LogRow[] {
  const identities = new Set(repeated.map(identityOf));
  return rows.map((row) => ({ ...row, facts: row.facts.filter((fact) => !identities.has(identityOf(fact))) }));
}

/** The sums of a day, and the facts that are added to them. */
interface Day {
  readonly sums: Sums;
  readonly facts: Fact[];
  readonly imports: ImportedFacts[];
}

/** The rows of the activity log that are added to the daily sums together, and the sums of their days. */
class Batch {
  readonly #table: Reads;
  readonly #companyId: number;
  readonly #days = new Map<string, Day>();
  #bytes = 0;

  constructor(table: Reads, companyId: number) {
    this.#table = table;
    this.#companyId = companyId;
  }

  get days(): string[] {
    return [...this.#days.keys()];
  }

  /** Adds a row of the activity log. Returns false if the batch is full. The first row is always accepted. */
  async add({ facts, imported, bytes }: LogRow): Promise<boolean> {
    const days = new Set([...facts, ...(imported === undefined ? [] : [imported])].map(({ at }) => dayOf(at)));
    const isFirst = this.#days.size === 0;
    if (!isFirst && (this.#bytes > BYTES_AT_ONCE || new Set([...days, ...this.days]).size > DAYS_AT_ONCE)) return false;
    for (const day of days) if (!this.#days.has(day)) this.#days.set(day, await this.#read(day));
    this.#bytes += bytes;
    for (const fact of facts) {
      const day = this.#days.get(dayOf(fact.at));
      day?.sums.addFact(fact);
      day?.facts.push(fact);
    }
    if (imported !== undefined) {
      const day = this.#days.get(dayOf(imported.at));
      day?.sums.addImported(imported);
      day?.imports.push(imported);
    }
    return true;
  }

  async #read(name: string): Promise<Day> {
    const day: Day = { sums: new Sums(), facts: [], imports: [] };
    for await (const { sk, bytes } of this.#table.query(activityKeys.daySums(this.#companyId, name, name))) {
      if (!(bytes instanceof Uint8Array))
        throw new ActivityUnreadable(`the row ${String(sk)} of the activity has no sums`);
      this.#bytes += bytes.length;
      for (const cell of decoded(sk, () => decodeCells(bytes))) day.sums.addCell(cell);
    }
    return day;
  }

  /** Returns the writes of the new sums and of the single facts of each day. */
  writes(version: number): { put: Key & Item & { bytes: Uint8Array } }[] {
    return [...this.#days].flatMap(([day, { sums, facts, imports }]) => {
      const cells = inParts([...sums].toSorted(byUser), CELLS_PER_ROW);
      const parts = inParts(
        facts.toSorted((a, b) => a.at - b.at),
        FACTS_PER_ROW,
      );
      const stored = [
        ...parts.map((part) => ({ type: "dayFacts", bytes: encodeFacts(part) })),
        ...imports.map((imported) => ({ type: "dayImport", bytes: encodeImported(imported) })),
      ];
      return [
        ...cells.map((part, i) => ({
          put: { ...activityKeys.daySum(this.#companyId, day, i), type: "daySum", version, bytes: encodeCells(part) },
        })),
        ...stored.map((row, i) => ({ put: { ...activityKeys.factsOfDay(this.#companyId, day, version, i), ...row } })),
      ];
    });
  }
}

const byUser = (a: Cell, b: Cell): number => a.userId - b.userId || (a.statusId ?? 0) - (b.statusId ?? 0);

const inParts = <T>(values: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(values.length / size) }, (_, part) => values.slice(part * size, (part + 1) * size));
