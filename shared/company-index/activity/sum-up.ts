/**
 * Moves facts from the log of a company's activity into the sums of days. The sums of a day say how often each user did what. A flush of the
 * search index does this from time to time, in the transaction that moves the head row, so that each fact is in the sums exactly once.
 */

import {
  countedSince,
  dayOf,
  type FactState,
  type LogRow,
  logRow,
  logWrites,
  nextState,
  readState,
} from "#shared/company-index/activity/log.ts";
import { type Cell, decodeCells, encodeCells, Sums } from "#shared/company-index/activity/sums.ts";
import { ActivityUnreadable, decoded } from "#shared/company-index/activity/unreadable.ts";
import { encodeFacts, encodeImported, type Fact, type ImportedFacts, identityOf } from "#shared/company-index/facts.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import type { UnflushedFacts } from "#shared/company-index/unflushed-facts.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { errorFields, log } from "#shared/log.ts";

/** Number of versions of the head row after which the log is summed up. A report reads at most about this number of rows of the log. */
export const VERSIONS_PER_SUM = 32;
/** About the bytes of one flush in the log. If the sums are large, the log is summed up less often, because they are then written again. */
const BYTES_PER_VERSION = 512;
/** Maximum bytes of the log, and number of days, that are summed up at once. A transaction writes at most 4 MB and 100 rows. */
const BYTES_AT_ONCE = 1_000_000;
const DAYS_AT_ONCE = 30;
/** Maximum numbers of cells and of facts in a row, which has at most 400 KB. */
const CELLS_PER_ROW = 20_000;
const FACTS_PER_ROW = 20_000;

/** What a flush adds to its transaction, and the rows of the log that it must delete afterwards. */
export interface Activity {
  readonly writes: readonly Write[];
  readonly done: readonly Key[];
}

export interface WhenToSum {
  readonly nowMs: number;
  /** Number of versions of the head row, usually `VERSIONS_PER_SUM`. */
  readonly sumAfter: number;
}

/** Returns what a flush of these entries does for the company's activity. */
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
  const since = countedSince(head, state, nowMs);
  const known: FactState = { version: 0, upTo: "", days: [], bytes: 0, ...state, since };
  if (head.version - known.version >= Math.max(sumAfter, Math.floor(known.bytes / BYTES_PER_VERSION / 2))) {
    const summed = await unlessDamaged(companyId, () => sumUp(table, companyId, head, facts, known));
    if (summed !== undefined && summed.writes.length > 0) {
      return { writes: [...own, ...summed.writes], done: summed.done };
    }
  }
  return { writes: state?.since === since ? own : [...own, nextState(companyId, known)], done: [] };
}

/** Returns undefined if a row of the activity is damaged, because such a row must not stop the flushes of the search index. */
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
 * Sums up the oldest rows of the log. A killed flush leaves its entries in the table, and the next flush adds their facts to the log once
 * more. So a row is summed up only when no unflushed entry has one of its facts any more: no later row can then contain them.
 */
async function sumUp(
  table: Reads,
  companyId: number,
  head: Head,
  unflushed: readonly Fact[],
  state: FactState,
): Promise<Activity> {
  const present = new Set(unflushed.map(identityOf));
  const batch = new Batch(table, companyId);
  const done: Key[] = [];
  let { upTo } = state;
  const { pk } = activityKeys.factLog(companyId);
  for await (const item of table.query({ pk, begins: "A#", pageItems: VERSIONS_PER_SUM })) {
    const row = logRow(item);
    if (row.sk > state.upTo) {
      if (row.facts.some((fact) => present.has(identityOf(fact))) || !(await batch.add(row))) break;
      upTo = row.sk;
    }
    done.push({ pk, sk: row.sk });
  }
  if (upTo === state.upTo) return { writes: [], done };
  const version = head.version + 1;
  const writes = batch.writes(version);
  const bytes = writes.reduce((sum, { put }) => sum + put.bytes.length, 0);
  return { writes: [...writes, nextState(companyId, { ...state, version, upTo, days: batch.days, bytes })], done };
}

/** A day to whose sums facts are added. */
interface Day {
  readonly sums: Sums;
  readonly facts: Fact[];
  readonly imports: ImportedFacts[];
}

/** The rows of the log that are summed up together, and the sums of their days. */
class Batch {
  readonly #table: Reads;
  readonly #companyId: number;
  readonly #days = new Map<string, Day>();
  readonly #seen = new Set<string>();
  #bytes = 0;

  constructor(table: Reads, companyId: number) {
    this.#table = table;
    this.#companyId = companyId;
  }

  get days(): string[] {
    return [...this.#days.keys()];
  }

  /** Adds a row of the log. Returns false if the batch is full. The first row always fits. */
  async add({ facts, imported, bytes }: LogRow): Promise<boolean> {
    const days = new Set([...facts, ...(imported === undefined ? [] : [imported])].map(({ at }) => dayOf(at)));
    const isFirst = this.#days.size === 0;
    if (!isFirst && (this.#bytes > BYTES_AT_ONCE || new Set([...days, ...this.days]).size > DAYS_AT_ONCE)) return false;
    for (const day of days) if (!this.#days.has(day)) this.#days.set(day, await this.#read(day));
    this.#bytes += bytes;
    for (const fact of facts) {
      const identity = identityOf(fact);
      if (this.#seen.has(identity)) continue;
      this.#seen.add(identity);
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

  /** Returns the new sums of each day, and the facts by day. */
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
