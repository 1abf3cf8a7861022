/** The lease by which one run holds a job, stored in the job's row, and the sweep that sends a message for each job without a live run. */
import * as z from "zod/mini";
import { type Clock, iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { equals } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, isTransient } from "#shared/errors.ts";

/**
 * A lease that is not renewed expires after this time. Each single call of a run takes less time, so a live run can always renew its
 * lease.
 */
export const LEASE_MS = 120_000;
/**
 * The default interval of heartbeats. It is short enough to show clients progress, and its writes are few compared with those of the rows.
 */
const HEARTBEAT_MS = 3_000;
/** A run hands over to another run when less than this time remains before the timeout of the function. */
const RESERVE_MS = 60_000;
/** A job fails after this many consecutive runs that died, or failed by an error of our own code, without progress. */
export const MAX_FRUITLESS_RUNS = 10;

/** The run has lost its lease, because another run has written the row of the job or the job has ended. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

interface Row {
  readonly version: number;
}

type Update = Extract<Write, { update: Key }>;

/** The write that ends a job. The sweep does not find the job afterwards. The write fails if another run has written the row. */
export const ending = (key: Key, { version }: Row, set: Item, nowMs: number): Update => ({
  update: key,
  change: { set: { ...set, updatedAt: iso(nowMs) }, remove: ["dueShard", "dueAt"], add: { version: 1 } },
  when: equals("version", version),
});

/** Returns the number of runs without progress after this error. A transient error of AWS does not count as a run. */
export const fruitlessRuns = (runs: number, error: unknown): number =>
  isTransient(error) ? Math.max(0, runs - 1) : runs;

/**
 * The lease of a run. `S` is the row of the job. Each write renews the lease and fails if another run has written the row. The attribute
 * `runsUntil` is the end of the lease, and `dueAt` is the time when the sweep looks at the row.
 */
export class JobLease<S extends Row> {
  readonly #table: Table;
  readonly #clock: Clock;
  readonly #key: Key;
  readonly #parse: (item: unknown) => S;
  readonly #remainingMs: () => number;
  #stored: S;
  #renewedAt = 0;

  constructor(
    { table, clock }: { readonly table: Table; readonly clock: Clock },
    key: Key,
    parse: (item: unknown) => S,
    stored: S,
    remainingMs: () => number,
  ) {
    this.#table = table;
    this.#clock = clock;
    this.#key = key;
    this.#parse = parse;
    this.#stored = stored;
    this.#remainingMs = remainingMs;
  }

  get stored(): S {
    return this.#stored;
  }

  /** Whether this run should hand over before work that takes `forMs` milliseconds. */
  isLate(forMs = 0): boolean {
    return this.#remainingMs() < RESERVE_MS + forMs;
  }

  /** Writes the attributes and renews the lease. Throws LeaseLost. */
  async save(set: Partial<S> & Item): Promise<void> {
    const until = this.#clock.now() + LEASE_MS;
    await this.#write({ ...set, runsUntil: until, dueShard: keys.jobShard, dueAt: iso(until) });
  }

  /** Does nothing if the lease was renewed within `everyMs` milliseconds, and saves otherwise. Throws LeaseLost. */
  async heartbeat(set: Partial<S> & Item, everyMs = HEARTBEAT_MS): Promise<void> {
    if (this.#clock.now() - this.#renewedAt >= everyMs) await this.save(set);
  }

  /** Ends the lease and makes the job due now. Throws LeaseLost. */
  async release(set: Partial<S> & Item): Promise<void> {
    const now = this.#clock.now();
    await this.#write({ ...set, runsUntil: now, dueShard: keys.jobShard, dueAt: iso(now) });
  }

  /** Writes the attributes and ends the job. Throws LeaseLost. */
  async end(set: Partial<S> & Item): Promise<void> {
    await this.#send(ending(this.#key, this.#stored, set, this.#clock.now()));
  }

  async #write(set: Item): Promise<void> {
    const now = this.#clock.now();
    const change = { set: { ...set, updatedAt: iso(now) }, add: { version: 1 } };
    await this.#send({ update: this.#key, change, when: equals("version", this.#stored.version) });
    this.#renewedAt = now;
  }

  async #send(write: Update): Promise<void> {
    try {
      this.#stored = this.#parse(await this.#table.write(write));
    } catch (error) {
      throw error instanceof ConditionFailed ? new LeaseLost("another run has written the row of the job") : error;
    }
  }
}

/** The sweep skips jobs that became due within this time, because the job's own message may still be in the queue. */
const GRACE_MS = 15_000;
/** After the sweep has sent a message, it skips the job for this time. */
const RESEND_MS = 5 * 60_000;

const DueRow = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/** Sends a message for each import and export that is due. Returns the number of messages. */
export async function sweepJobs({ table, clock, jobs }: Pick<AppContext, "table" | "clock" | "jobs">): Promise<number> {
  const now = clock.now();
  let sent = 0;
  for await (const item of table.query({ pk: keys.jobShard, index: "due", upTo: iso(now - GRACE_MS) })) {
    const { pk, sk, dueAt } = DueRow.parse(item);
    const job = keys.jobAt({ pk, sk });
    if (job === undefined) continue;
    // The condition fails if another sweep has sent the message, or if a run has begun since the query.
    const postponed = { set: { dueAt: iso(now + RESEND_MS) } };
    try {
      await table.write({ update: { pk, sk }, change: postponed, when: equals("dueAt", dueAt) });
    } catch (error) {
      if (error instanceof ConditionFailed) continue;
      throw error;
    }
    await jobs.send(job);
    sent++;
  }
  return sent;
}
