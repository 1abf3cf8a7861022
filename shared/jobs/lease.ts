/** The lease with which one invocation owns a job, stored in the job's row, and the sweep, which replaces lost messages of jobs. */
import * as z from "zod/mini";
import { type Clock, iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { equals } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, isDeploymentFault, isTransient } from "#shared/errors.ts";

/** No single call of a job takes this long, so a working invocation can always renew its lease. */
export const LEASE_MS = 120_000;
/** The time between two writes of a job's progress is short enough for clients, and adds few writes to those of the prospects. */
const HEARTBEAT_MS = 3_000;
/** An invocation stops when less than this remains before its time-out. A new one continues the job. */
export const RESERVE_MS = 60_000;
/** A job fails after this number of consecutive invocations without progress, except for transient errors and faults of the deployment. */
export const MAX_FRUITLESS_RUNS = 10;

/** Thrown if another invocation has taken the job, or if the job has ended. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

interface Row {
  readonly version: number;
}

type Update = Extract<Write, { update: Key }>;

/** Ends a job, and takes it out of the due index. The write fails if another invocation has changed the row. */
export const ending = (key: Key, { version }: Row, set: Item, nowMs: number): Update => ({
  update: key,
  change: { set: { ...set, updatedAt: iso(nowMs) }, remove: ["dueShard", "dueAt"], add: { version: 1 } },
  when: equals("version", version),
});

/**
 * Returns the new `runs` after an invocation has failed. If the fault is in AWS or in the deployment, the invocation does not count. Such a
 * job waits until the fault is repaired, first by its message in the queue, and then by the sweep.
 */
export const fruitlessRuns = (runs: number, error: unknown): number =>
  isTransient(error) || isDeploymentFault(error) ? Math.max(0, runs - 1) : runs;

/**
 * The lease on a job whose row has the type `S`. `save` and `heartbeat` renew it. Each write fails if another invocation has changed the
 * row. At `dueAt`, the sweep sends a new message for the job.
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
    { table, clock }: Pick<AppContext, "table" | "clock">,
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

  /** `forMs` is the time that the work takes. */
  isLate(forMs = 0): boolean {
    return this.#remainingMs() < RESERVE_MS + forMs;
  }

  /** Renews the lease. Throws LeaseLost if another invocation has changed the row. */
  async save(set: Partial<S> & Item): Promise<void> {
    const until = this.#clock.now() + LEASE_MS;
    await this.#write({ ...set, runsUntil: until, dueShard: keys.jobShard, dueAt: iso(until) });
  }

  /** Like `save`, unless the last write was within the last `everyMs` milliseconds. */
  async heartbeat(set: Partial<S> & Item, everyMs = HEARTBEAT_MS): Promise<void> {
    if (this.#clock.now() - this.#renewedAt >= everyMs) await this.save(set);
  }

  /** Lets another invocation continue the job now. Throws LeaseLost if another invocation has changed the row. */
  async release(set: Partial<S> & Item): Promise<void> {
    const now = this.#clock.now();
    await this.#write({ ...set, runsUntil: now, dueShard: keys.jobShard, dueAt: iso(now) });
  }

  /** Throws LeaseLost if another invocation has changed the row. */
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

/** A job's own message is probably still in the queue if `dueAt` passed less than this time ago. */
const GRACE_MS = 15_000;
const RESEND_MS = 5 * 60_000;

const DueRow = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/** Returns the number of messages. */
export async function sweepJobs({ table, clock, jobs }: Pick<AppContext, "table" | "clock" | "jobs">): Promise<number> {
  const now = clock.now();
  let sent = 0;
  for await (const item of table.query({ pk: keys.jobShard, index: "due", upTo: iso(now - GRACE_MS) })) {
    const { pk, sk, dueAt } = DueRow.parse(item);
    const job = keys.jobAt({ pk, sk });
    if (job === undefined) continue;
    // Another sweep has sent the message, or an invocation has renewed its lease since the query.
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
