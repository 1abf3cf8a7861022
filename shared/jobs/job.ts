/** What imports, exports and bulk jobs share: the row of a job, its lease, its invocations, and the sweep for lost messages. */
import * as z from "zod/mini";
import { ringOf } from "#shared/auth/api-key.ts";
import { type Caller, common } from "#shared/auth/caller.ts";
import { StoredKeyRing } from "#shared/auth/key-ring.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { JobId, JobMessage } from "#shared/aws/sqs.ts";
import { type Clock, iso } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { AppContext, JobContext, ReadContext } from "#shared/context.ts";
import { all, type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { acquire, type Held, LeaseLost } from "#shared/db/lease.ts";
import { conditionHolds, isDeploymentFault, isTransient } from "#shared/errors.ts";
import { errorFields, log } from "#shared/log.ts";
import { Id, Timestamp } from "#shared/schema.ts";

/** The duration of a lease. No single call to AWS takes this long, so a working invocation can always renew its lease in time. */
export const LEASE_MS = 120_000;
/** Minimum time between two writes of a job's progress: short enough for clients, and long enough to add few writes. */
const HEARTBEAT_MS = 3_000;
/** An invocation stops when less than this remains before its time-out. A new one continues the job. */
const RESERVE_MS = 60_000;
/** A job fails after this number of consecutive invocations without progress, except for transient errors and faults of the deployment. */
export const MAX_FRUITLESS_RUNS = 10;

export const jobFields = {
  id: Id,
  companyId: Id,
  createdBy: Id,
  /** The API key that began the job. The job never has more rights than this key. Absent for a person. */
  keyId: z.optional(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** The end of the lease. Absent until the first invocation. */
  runsUntil: z.optional(Timestamp),
  /** Number of invocations since the last checkpoint. At `MAX_FRUITLESS_RUNS`, the next invocation ends the job as failed. */
  runs: z.int(),
  failure: z.optional(z.string()),
};
const JobRow = z.object(jobFields);
export type JobRow = z.infer<typeof JobRow>;

export function newJobRow(caller: Caller, id: number, nowMs: number): JobRow {
  const { companyId, userId, key } = caller;
  const now = iso(nowMs);
  return { id, companyId, createdBy: userId, keyId: key?.id, createdAt: now, updatedAt: now, runs: 0 };
}

/** Returns the user who began the job, with no more rights than the job's API key. Undefined if the user is disabled or the key revoked. */
export async function jobCaller(
  { table }: Pick<ReadContext, "table">,
  { companyId, createdBy, keyId }: JobRow,
  { isActive, role, permissions }: StoredUser,
): Promise<Caller | undefined> {
  if (!isActive) return undefined;
  const caller = { companyId, userId: createdBy, role, permissions };
  if (keyId === undefined) return caller;
  const ring = StoredKeyRing.parse(await table.get(keys.keyRing(ringOf(keyId))));
  const key = ring.keys.find(({ id }) => id === keyId);
  return key && { ...caller, ...common(caller, key.creatorRights) };
}

/** Like `jobCaller`, with the current row of the user. */
export async function currentCaller({ table }: Pick<JobContext, "table">, job: JobRow): Promise<Caller | undefined> {
  const user = StoredUser.parse(await table.get(keys.user(job.companyId, job.createdBy)));
  return jobCaller({ table }, job, user);
}

/** The sweep finds a job with these attributes from this time on, assumes that the job's message was lost, and sends a new one. */
export const due = (ms: number) => ({ dueShard: keys.jobShard, dueAt: iso(ms) });
export const notDue: readonly string[] = ["dueShard", "dueAt"];

/** The condition that no invocation has written the row since it was read. */
export const isUntouched = ({ runsUntil }: Pick<JobRow, "runsUntil">): Condition =>
  runsUntil === undefined ? missing("runsUntil") : equals("runsUntil", runsUntil);

/**
 * Returns a new value of `runsUntil`, one millisecond later. It takes the lease from its holder, whose writes require the earlier value.
 * The next invocation still begins only after the last write of the holder has ended.
 */
export const revoked = ({ runsUntil }: Pick<JobRow, "runsUntil">): string | undefined =>
  runsUntil === undefined ? undefined : iso(Date.parse(runsUntil) + 1);

/** Sends the message of a job that may run. Ignores a failure, because the sweep sends the message within two minutes. */
export async function announce(jobs: Pick<AppContext["jobs"], "send">, message: JobMessage): Promise<void> {
  await jobs.send(message).catch((error: unknown) => {
    log.warn("job not queued", { kind: message.kind, id: message.id, ...errorFields(error) });
  });
}

/** The lease of one invocation on a job. Each write throws LeaseLost if another invocation has taken the job, or if the job has ended. */
export class RunningJob<Row extends JobRow> {
  readonly #clock: Clock;
  readonly #held: Held<Row>;
  readonly #endMs: () => number;
  #renewedAt: number;

  /** `endMs` returns when the invocation must stop. An import within a request leaves it out, because the request has another deadline. */
  constructor(clock: Clock, held: Held<Row>, endMs = (): number => Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#held = held;
    this.#endMs = endMs;
    this.#renewedAt = clock.now();
  }

  get stored(): Row {
    return this.#held.row;
  }

  get isHeld(): Condition {
    return this.#held.isHeld;
  }

  get heldUntilMs(): number {
    return Date.parse(this.#held.until);
  }

  /** `forMs` is the time that the next step of the work takes. */
  isLate(forMs = 0): boolean {
    return this.#clock.now() + forMs > this.#endMs();
  }

  async save(set: Partial<Row>): Promise<void> {
    const now = this.#clock.now();
    await this.#held.renew({ set: { ...set, updatedAt: iso(now), ...due(now + LEASE_MS) } });
    this.#renewedAt = now;
  }

  /** Like `save`, unless the last write was within the last `everyMs` milliseconds. */
  async heartbeat(set: Partial<Row>, everyMs = HEARTBEAT_MS): Promise<void> {
    if (this.#clock.now() - this.#renewedAt >= everyMs) await this.save(set);
  }

  /** Lets another invocation continue the job now. */
  async release(runs = this.stored.runs): Promise<void> {
    const now = this.#clock.now();
    await this.#held.release(now, { set: { runs, updatedAt: iso(now), ...due(now) } });
  }

  async end(set: Partial<Row>): Promise<void> {
    await this.#held.end({ set: { ...set, updatedAt: iso(this.#clock.now()) }, remove: notDue });
  }
}

interface Begun<Row> {
  readonly set: Partial<Row>;
  readonly when: Condition;
}

export interface JobKind<Row extends JobRow> {
  readonly name: JobMessage["kind"];
  readonly schema: z.ZodMiniType<Row>;
  readonly keyOf: (id: JobId) => Key;
  /** An invocation stops after this time, and another one continues the job, so that other companies get their turn. */
  readonly turnMs?: number;
  /** Returns undefined if the job needs no work now. */
  readonly begin: (context: JobContext, stored: Row) => Promise<Begun<Row> | undefined>;
  /** Returns true if the job has ended, and false to continue it in another invocation. `found` is the row before `begin`. */
  readonly work: (context: JobContext, job: RunningJob<Row>, found: Row) => Promise<boolean>;
  /** Ends a job after too many invocations without progress. */
  readonly giveUp: (context: JobContext, job: RunningJob<Row>, found: Row) => Promise<void>;
}

/** Executes a job for one invocation. A call may be interrupted and repeated, and two calls may overlap. */
export async function runJob<Row extends JobRow>(
  kind: JobKind<Row>,
  context: JobContext,
  id: JobId,
  remainingMs: () => number,
): Promise<void> {
  try {
    await run(kind, context, id, remainingMs);
  } catch (error) {
    // Another invocation is working on the job or has ended it, so a retry would do nothing.
    if (!(error instanceof LeaseLost)) throw error;
  }
}

async function run<Row extends JobRow>(
  kind: JobKind<Row>,
  context: JobContext,
  { companyId, id }: JobId,
  remainingMs: () => number,
): Promise<void> {
  const item = await context.table.get(kind.keyOf({ companyId, id }));
  if (item === undefined) return;
  const found = kind.schema.parse(item);
  const begun = await kind.begin(context, found);
  const held = begun === undefined ? undefined : await take(kind, context, found, begun);
  if (held === undefined) return;
  const { clock } = context;
  const turnEndMs = clock.now() + (kind.turnMs ?? Number.POSITIVE_INFINITY);
  const job = new RunningJob(clock, held, () => Math.min(clock.now() + remainingMs() - RESERVE_MS, turnEndMs));
  try {
    if (found.runs >= MAX_FRUITLESS_RUNS) return await kind.giveUp(context, job, found);
    if (await kind.work(context, job, found)) return;
    await job.release();
    await context.jobs.send({ kind: kind.name, companyId, id });
  } catch (error) {
    // The lease is released, so that a retry can begin before the lease would expire.
    if (!(error instanceof LeaseLost)) await job.release(runsAfter(error, job.stored)).catch(() => undefined);
    throw error;
  }
}

/**
 * Returns the number of invocations without progress. An invocation does not count if the fault is in AWS or in the deployment. The job
 * then waits until the fault is repaired: its message returns from the queue, and later the sweep sends new messages.
 */
const runsAfter = (error: unknown, { runs }: JobRow): number =>
  isTransient(error) || isDeploymentFault(error) ? Math.max(0, runs - 1) : runs;

function take<Row extends JobRow>(
  { keyOf, schema }: JobKind<Row>,
  context: JobContext,
  found: Row,
  { set, when }: Begun<Row>,
): Promise<Held<Row> | undefined> {
  const now = context.clock.now();
  const lease = {
    key: keyOf(found),
    schema,
    attribute: "runsUntil",
    ms: LEASE_MS,
    isOpen: all(when, isUntouched(found)),
  };
  return acquire(context, lease, {
    set: { ...set, runs: found.runs + 1, updatedAt: iso(now), ...due(now + LEASE_MS) },
  });
}

/** The sweep ignores a job for this time after `dueAt`, because the job's own message is probably still in the queue. */
const GRACE_MS = 15_000;
const RESEND_MS = 5 * 60_000;

const DueRow = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/** Sends a new message for each job whose message was probably lost. Returns the number of sent messages. */
export async function sweepJobs({ table, clock, jobs }: Pick<AppContext, "table" | "clock" | "jobs">): Promise<number> {
  const now = clock.now();
  let sent = 0;
  for await (const item of table.query({ pk: keys.jobShard, index: "due", upTo: iso(now - GRACE_MS) })) {
    const { pk, sk, dueAt } = DueRow.parse(item);
    const job = keys.jobAt({ pk, sk });
    if (job === undefined) continue;
    // The condition on `dueAt` fails if another sweep has sent the message, or an invocation has renewed its lease, since the query.
    const postponed = { set: { dueAt: iso(now + RESEND_MS) } };
    const write = table.write({ update: { pk, sk }, change: postponed, when: equals("dueAt", dueAt) });
    if (!(await conditionHolds(write))) continue;
    await jobs.send(job);
    sent++;
  }
  return sent;
}

/** Default of `changesAtOnce`. With it, a job changes about a thousand records a second, because a transaction takes some milliseconds. */
export const CHANGES_AT_ONCE = 12;

/** Records that a job changes at the same time: fewer in a small account, because each change starts functions that read the stream. */
export const changesAtOnce = (): number => setting("CHANGES_AT_ONCE") ?? CHANGES_AT_ONCE;
