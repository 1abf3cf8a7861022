/** The log of a company's facts, from which flushes make daily sums for reports (docs/decisions/2026-11-23-activity.md). */
import * as z from "zod/mini";
import {
  decodeFacts,
  decodeImported,
  encodeFacts,
  encodeImported,
  type Fact,
  type ImportedFacts,
} from "#shared/company-index/facts.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";

/** A row of the log has at most this many facts and days, because one transaction of limited size adds a whole row to the daily sums. */
const FACTS_PER_ROW = 8_000;
const DAYS_PER_ROW = 30;

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** The state row of a company's activity. It says which rows of the log the daily sums contain. */
export const FactState = z.object({
  /** From this time on (in milliseconds since 1970), every fact is counted. Null if all facts of the company are counted. */
  since: z.nullable(z.int()),
  /** The version of the head after the transaction that last changed the daily sums. */
  version: z._default(z.int(), 0),
  /** The sort key of the newest row of the log that the daily sums contain. Empty if they contain none. */
  upTo: z._default(z.string(), ""),
  /** The days whose sums the transaction of `version` wrote. */
  days: z._default(z.array(z.string()), []),
  /** Total bytes of the sums and facts that the transaction of `version` wrote. */
  bytes: z._default(z.int(), 0),
});
export type FactState = z.infer<typeof FactState>;

export const LoggedFacts = z.object({
  sk: z.string(),
  facts: z.optional(z.instanceof(Uint8Array)),
  imported: z.optional(z.instanceof(Uint8Array)),
});

export interface LogRow {
  readonly sk: string;
  /** The version of the head after the transaction that added this row to the log. */
  readonly version: number;
  readonly facts: readonly Fact[];
  readonly imported: ImportedFacts | undefined;
  readonly bytes: number;
}

const rowKey = /^A#(\d+)#\d+$/;

export const logRow = (item: Item): LogRow =>
  decoded(item.sk, () => {
    const { sk, facts, imported } = LoggedFacts.parse(item);
    return {
      sk,
      version: Number(rowKey.exec(sk)?.[1]),
      facts: facts === undefined ? [] : decodeFacts(facts),
      imported: imported === undefined ? undefined : decodeImported(imported),
      bytes: [facts, imported].reduce((sum, bytes) => sum + (bytes?.length ?? 0), 0),
    };
  });

export const factState = (item: Item): FactState => decoded(item.sk, () => FactState.parse(item));

export const nextState = (companyId: number, state: FactState): Write => ({
  put: { ...activityKeys.factState(companyId), type: "factState", ...state },
});

export const firstState = (companyId: number): Write =>
  nextState(companyId, { since: null, version: 0, upTo: "", days: [], bytes: 0 });

/**
 * Returns the write that sets `since` to `nowMs`. Use it if earlier facts were not stored: reports then show since when they are complete.
 */
export const countingBegins = (companyId: number, nowMs: number): Write => ({
  update: activityKeys.factState(companyId),
  change: { set: { type: "factState", since: nowMs } },
});

export async function readState(table: Reads, companyId: number): Promise<FactState | undefined> {
  const item = await table.get(activityKeys.factState(companyId));
  return item === undefined ? undefined : factState(item);
}

/** Returns the time since which every fact is counted (without a state row: `nowMs`), or null if all facts are counted. */
export const countedSince = (state: FactState | undefined, nowMs: number): number | null =>
  state === undefined ? nowMs : state.since;

export interface LogWrite {
  readonly put: Key & Item;
}

/** Returns writes that log the facts in rows numbered from `firstPart`. `version` is the head's version after the transaction with them. */
export function logWrites(companyId: number, version: number, facts: readonly Fact[], firstPart = 0): LogWrite[] {
  const rows: Fact[][] = [];
  let days = new Set<string>();
  for (const fact of facts.toSorted((a, b) => a.at - b.at)) {
    days.add(dayOf(fact.at));
    const last = rows.at(-1);
    if (last === undefined || last.length >= FACTS_PER_ROW || days.size > DAYS_PER_ROW) {
      rows.push([fact]);
      days = new Set([dayOf(fact.at)]);
    } else last.push(fact);
  }
  return rows.map((row, part) => ({
    put: {
      ...activityKeys.loggedFacts(companyId, version, firstPart + part),
      type: "loggedFacts",
      facts: encodeFacts(row),
    },
  }));
}

/** Returns the write that logs the facts of an import. `version` is the version of the head after the transaction with this write. */
export const importedWrite = (companyId: number, version: number, imported: ImportedFacts): Write => ({
  put: {
    ...activityKeys.loggedFacts(companyId, version, 0),
    type: "loggedFacts",
    imported: encodeImported(imported),
  },
});

/** A stored row of a company's activity is damaged. Only reports need these rows, so the company index still works. */
export class ActivityUnreadable extends Error {
  override name = "ActivityUnreadable";
}

export function decoded<T>(sortKey: unknown, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    // The error has no `cause`. A cause of the type IndexUnreadable would trigger the alarm for a damaged company index.
    const reason = error instanceof Error ? error.name : typeof error;
    throw new ActivityUnreadable(`the row ${String(sortKey)} of the activity is damaged: ${reason}`);
  }
}
