/** Adds facts of the log to the daily sums, in the transaction of a flush, so that no row of the log is added twice. */
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
import { type Cell, decodeCells, encodeCells, Sums } from "#shared/company-index/activity/sums.ts";
import type { Unflushed } from "#shared/company-index/delta.ts";
import { idOrZero } from "#shared/company-index/encoding.ts";
import { encodeFacts, encodeImported, type Fact, type ImportedFacts, identityOf } from "#shared/company-index/facts.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { errorFields, log } from "#shared/log.ts";

/** Minimum number of versions of the head between two additions to the sums. With a higher number, reports read more rows of the log. */
export const VERSIONS_PER_SUM = 32;
/** Estimated bytes that a flush logs. The next addition to the sums waits until the log has grown by half of the last addition's bytes. */
const BYTES_PER_VERSION = 512;
/** A transaction that reaches one of these limits adds no further row of the log to the sums. DynamoDB allows it 4 MB and 100 rows. */
const BYTES_AT_ONCE = 1_000_000;
const DAYS_AT_ONCE = 30;
/** Maximum number of cells in a row of sums, and of facts in a row of facts. DynamoDB limits a row to 400 KB. */
const CELLS_PER_ROW = 20_000;
const FACTS_PER_ROW = 20_000;

/** The writes for the flush's transaction, and the keys of the log's rows that the flush must delete afterwards. */
export interface Activity {
  readonly writes: readonly Write[];
  readonly done: readonly Key[];
}

/**
 * Returns writes that log the unflushed facts. After `sumAfter` versions of the head, also returns writes that add older facts to the sums.
 */
export async function activityOf(
  table: Reads,
  companyId: number,
  { head, facts }: Pick<Unflushed, "head" | "facts">,
  { nowMs, sumAfter }: { readonly nowMs: number; readonly sumAfter: number },
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

/** Returns undefined if `work` reads a damaged row, because such a row must not stop the flushes. */
async function unlessDamaged<T>(companyId: number, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ActivityUnreadable)) throw error;
    log.error("activity not summed up", { companyId, ...errorFields(error) });
    return undefined;
  }
}

/** Adds the oldest rows of the log to the sums. `done` includes rows that an earlier flush has added to the sums but not deleted. */
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

/** The rows that one flush has logged, and the rows of imports that come after them in the log. */
interface FlushedRows {
  readonly version: number;
  readonly rows: LogRow[];
}

/**
 * Omits a fact if the next flush has logged it again. This happens if a flush is killed after it has logged the fact and before it deletes
 * the delta entry. Copies of a fact are therefore in the rows of successive flushes. The present flush, which logs the facts `unflushed`,
 * comes after the last row.
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

interface Day {
  readonly sums: Sums;
  readonly facts: Fact[];
  readonly imports: ImportedFacts[];
}

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

  /** Adds a row of the log to the sums. Returns false if the transaction would become too large. The first row is always accepted. */
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

const byUser = (a: Cell, b: Cell): number => a.userId - b.userId || idOrZero(a.statusId) - idOrZero(b.statusId);

const inParts = <T>(values: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(values.length / size) }, (_, part) => values.slice(part * size, (part + 1) * size));
