/**
 * The lease with which one invocation owns a job (an import, an export or a bulk job). The lease is stored in the job's row. This file also
 * contains the sweep, which sends lost messages of jobs again.
 */
import * as z from "zod/mini";
import { type Clock, iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { equals } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, isDeploymentFault, isTransient } from "#shared/errors.ts";

/**
 * A lease expires if it is not renewed within this time. No single call that a job makes, for example to DynamoDB or S3, takes this long. A
 * working invocation can therefore always renew its lease.
 */
export const LEASE_MS = 120_000;
/**
 * Minimum interval between two writes of a job's progress. It is short enough for clients to see progress. It is long enough that these
 * writes are few compared with the writes of the prospects.
 */
const HEARTBEAT_MS = 3_000;
/** An invocation stops when less than this time remains before its time-out. A new invocation then continues the job. */
export const RESERVE_MS = 60_000;
/**
 * A job fails after this number of consecutive invocations without progress. Each of them was interrupted, or ended with an error that is
 * neither transient nor a fault of the deployment.
 */
export const MAX_FRUITLESS_RUNS = 10;

/** Thrown if another invocation has taken the job, or if the job has ended. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

interface Row {
  readonly version: number;
}

type Update = Extract<Write, { update: Key }>;

/**
 * Returns the write that ends a job. It also removes the attributes by which the sweep (a regular search) finds jobs whose message may be
 * lost. The write fails if another invocation has changed the row.
 */
export const ending = (key: Key, { version }: Row, set: Item, nowMs: number): Update => ({
  update: key,
  change: { set: { ...set, updatedAt: iso(nowMs) }, remove: ["dueShard", "dueAt"], add: { version: 1 } },
  when: equals("version", version),
});

/**
 * Returns the new value of `runs`, the number of invocations without progress, after an invocation has failed with this error. `runs`
 * already counts this invocation. If the fault is in AWS or in the deployment and not in the job, the invocation must not count, so the
 * function subtracts 1. Such a job waits until the fault is repaired: its message returns to the queue. When the queue has given up the
 * message, the sweep (a regular search for lost messages) sends another one.
 */
export const fruitlessRuns = (runs: number, error: unknown): number =>
  isTransient(error) || isDeploymentFault(error) ? Math.max(0, runs - 1) : runs;

/**
 * The lease on a job whose row has the type `S`. `save` and `heartbeat` renew the lease. Each write fails if another invocation has changed
 * the row. The row's attribute `runsUntil` is the end of the lease. At the time `dueAt`, the sweep (a regular search for jobs whose message
 * may be lost) sends a new message for the job.
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

  /** Returns true if the invocation has too little time for work that takes `forMs` milliseconds. */
  isLate(forMs = 0): boolean {
    return this.#remainingMs() < RESERVE_MS + forMs;
  }

  /** Writes the attributes and renews the lease. Throws LeaseLost if another invocation has changed the row. */
  async save(set: Partial<S> & Item): Promise<void> {
    const until = this.#clock.now() + LEASE_MS;
    await this.#write({ ...set, runsUntil: until, dueShard: keys.jobShard, dueAt: iso(until) });
  }

  /**
   * Writes the attributes and renews the lease, unless the last such write was within the last `everyMs` milliseconds. Throws LeaseLost if
   * another invocation has changed the row.
   */
  async heartbeat(set: Partial<S> & Item, everyMs = HEARTBEAT_MS): Promise<void> {
    if (this.#clock.now() - this.#renewedAt >= everyMs) await this.save(set);
  }

  /**
   * Releases the lease, so that another invocation can continue the job now. Throws LeaseLost if another invocation has changed the row.
   */
  async release(set: Partial<S> & Item): Promise<void> {
    const now = this.#clock.now();
    await this.#write({ ...set, runsUntil: now, dueShard: keys.jobShard, dueAt: iso(now) });
  }

  /** Writes the attributes and ends the job. Throws LeaseLost if another invocation has changed the row. */
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

/**
 * The sweep (a regular search for jobs whose message may be lost) skips a job if its time `dueAt` passed less than 15 seconds ago, because
 * a job's own message is probably still in the SQS queue.
 */
const GRACE_MS = 15_000;
/** After the sweep has sent a message for a job, it waits this time before it sends another one. */
const RESEND_MS = 5 * 60_000;

const DueRow = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/** Sends a message for each job whose time `dueAt` has passed. Returns the number of messages. */
export async function sweepJobs({ table, clock, jobs }: Pick<AppContext, "table" | "clock" | "jobs">): Promise<number> {
  const now = clock.now();
  let sent = 0;
  for await (const item of table.query({ pk: keys.jobShard, index: "due", upTo: iso(now - GRACE_MS) })) {
    const { pk, sk, dueAt } = DueRow.parse(item);
    const job = keys.jobAt({ pk, sk });
    if (job === undefined) continue;
    // The condition fails if another sweep has sent the message, or if an invocation has renewed its lease since the query.
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
