/** The lease of one run on the row of a job, and the sweep that sends a message for each job without a live run. */
import * as z from "zod/mini";
import { type Clock, iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { equals } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, isTransient } from "#shared/errors.ts";

/** A lease that is not renewed expires after this time. Every single call of a run takes less. */
export const LEASE_MS = 120_000;
/** The default interval of heartbeats: clients see progress, and the writes cost little beside those of the rows. */
const HEARTBEAT_MS = 3_000;
/** A run hands over when it has less time left than this. */
const RESERVE_MS = 60_000;
/** A job fails after so many runs in a row that died, or failed by an error of our own code, without progress. */
export const MAX_FRUITLESS_RUNS = 10;

/** Another run has written the job's row, or the job is over. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

interface Row {
  readonly version: number;
}

type Update = Extract<Write, { update: Key }>;

/** Ends the job: no sweep finds it any more. The condition is that no other run has written the row. */
export const ending = (key: Key, { version }: Row, set: Item, nowMs: number): Update => ({
  update: key,
  change: { set: { ...set, updatedAt: iso(nowMs) }, remove: ["dueShard", "dueAt"], add: { version: 1 } },
  when: equals("version", version),
});

/** Counts the runs without progress after this error. A transient error of AWS does not count. */
export const fruitlessRuns = (runs: number, error: unknown): number =>
  isTransient(error) ? Math.max(0, runs - 1) : runs;

/**
 * The lease of a run. `S` is the row. Each write demands that no other run has written the row, and renews the lease. The row's
 * attribute `runsUntil` is the end of the lease; `dueAt` is when the sweep looks at the row.
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

  /** Whether this run should hand over before work that takes `forMs`. */
  isLate(forMs = 0): boolean {
    return this.#remainingMs() < RESERVE_MS + forMs;
  }

  /** Throws LeaseLost. */
  async save(set: Partial<S> & Item): Promise<void> {
    const until = this.#clock.now() + LEASE_MS;
    await this.#write({ ...set, runsUntil: until, dueShard: keys.jobShard, dueAt: iso(until) });
  }

  /** Saves unless the lease was renewed within `everyMs`. Throws LeaseLost. */
  async heartbeat(set: Partial<S> & Item, everyMs = HEARTBEAT_MS): Promise<void> {
    if (this.#clock.now() - this.#renewedAt >= everyMs) await this.save(set);
  }

  /** Gives the lease up and makes the job due at once. Throws LeaseLost. */
  async release(set: Partial<S> & Item): Promise<void> {
    const now = this.#clock.now();
    await this.#write({ ...set, runsUntil: now, dueShard: keys.jobShard, dueAt: iso(now) });
  }

  /** Throws LeaseLost. */
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

/** The job's own message may still be in the queue. */
const GRACE_MS = 15_000;
/** The sweep leaves a job alone for this time after it sent a message. */
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
    // The condition fails if another sweep has sent the message, or a run has begun meanwhile.
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
