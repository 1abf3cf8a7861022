/** Executes import, export and bulk jobs on a table and a bucket with planned faults, and simulates the queue. */
import { createHash } from "node:crypto";
import { beforeEach } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { Links } from "#shared/aws/links.ts";
import type { Objects } from "#shared/aws/s3.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import type { Clock } from "#shared/clock.ts";
import { type ApiContext, contextOn, type JobContext } from "#shared/context.ts";
import { BucketUnavailable, FileGone } from "#shared/errors.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { exportJob } from "#shared/jobs/export/job.ts";
import { importJob } from "#shared/jobs/import/job.ts";
import { findImport, type NewImport, summaryOf } from "#shared/jobs/import/requests.ts";
import { LEASE_MS, runJob, sweepJobs } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type FaultyDynamoDb, pass, serverError } from "../harness/faulty-dynamodb.ts";
import { killedAt } from "../harness/kills.ts";
import { beginImport } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

/** The fault of a call to the bucket: it fails before or after it takes effect. Undefined means that the call succeeds. */
export type BucketFault = "before" | "after" | undefined;

export interface MemoryBucket extends Objects {
  readonly files: Map<string, Uint8Array>;
  readonly uploads: Map<string, Map<number, Uint8Array>>;
  /** Returns the fault for the call with this number, counted from 1. */
  plan: (number: number) => BucketFault;
  calls: number;
}

/** The moments at which a job can be killed: before and after a call of the table or of the bucket takes effect. */
type JobDeath = readonly [when: "before" | "after", service: "table" | "bucket"];
export const jobDeaths: readonly JobDeath[] = [
  ["before", "table"],
  ["after", "table"],
  ["before", "bucket"],
  ["after", "bucket"],
];

const tagOf = (bytes: Uint8Array): string => `"${createHash("md5").update(bytes).digest("hex")}"`;

export function memoryBucket(): MemoryBucket {
  const files = new Map<string, Uint8Array>();
  const uploads = new Map<string, Map<number, Uint8Array>>();
  const found = (key: string): Uint8Array => {
    const bytes = files.get(key);
    if (bytes === undefined) throw new FileGone("there is no such file");
    return bytes;
  };
  const partsOf = (upload: string): Map<number, Uint8Array> => {
    const parts = uploads.get(upload);
    if (parts === undefined) throw new FileGone("there is no such upload");
    return parts;
  };
  async function call<T>(work: () => T): Promise<T> {
    const fault = bucket.plan(++bucket.calls);
    if (fault === "before") throw new BucketUnavailable("as planned");
    const result = work();
    if (fault === "after") throw new BucketUnavailable("as planned");
    return result;
  }
  const bucket: MemoryBucket = {
    files,
    uploads,
    plan: () => undefined,
    calls: 0,
    put: (key, bytes) => call(() => void files.set(key, Uint8Array.from(bytes))),
    get: (key) => call(() => found(key)),
    read: async function* (key, etag) {
      const bytes = await call(() => found(key));
      if (tagOf(bytes) !== etag) throw new FileGone("another file");
      for (let at = 0; at < bytes.length; at += 60_000) yield bytes.subarray(at, at + 60_000);
    },
    info: (key) =>
      call(() => {
        const bytes = files.get(key);
        return bytes === undefined ? undefined : { bytes: bytes.length, etag: tagOf(bytes) };
      }),
    remove: (key) => call(() => void files.delete(key)),
    beginParts: (key) =>
      call(() => {
        const upload = `${key}:${uploads.size}`;
        uploads.set(upload, new Map());
        return upload;
      }),
    putPart: (_, upload, number, bytes) =>
      call(() => {
        partsOf(upload).set(number, Uint8Array.from(bytes));
        return tagOf(bytes);
      }),
    completeParts: (key, upload, tags) =>
      call(() => {
        const parts = partsOf(upload);
        const all = tags.map((tag, i) => {
          const part = parts.get(i + 1);
          if (part === undefined || tagOf(part) !== tag) throw new Error(`part ${i + 1} is another one`);
          return part;
        });
        files.set(key, Buffer.concat(all));
        uploads.delete(upload);
      }),
    abortParts: (_, upload) => call(() => void uploads.delete(upload)),
  };
  return bucket;
}

const link = async (key: string) => ({ url: `https://files.test/${key}`, expiresAt: "2030-01-01T00:00:00.000Z" });
const links: Links = { download: link, upload: link };

export type FaultyJobs = ReturnType<typeof faultyJobs>;

function runOf(context: JobContext, job: JobMessage, remainingMs: () => number): Promise<void> {
  if (job.kind === "import") return runJob(importJob, context, job, remainingMs);
  if (job.kind === "export") return runJob(exportJob(), context, job, remainingMs);
  return runJob(bulkJob(), context, job, remainingMs);
}

const ample = (): number => 900_000;

export function faultyJobs(db: FaultyDynamoDb, now: { ms: number }) {
  const clock: Clock = { now: () => now.ms };
  const bucket = memoryBucket();
  const queue: JobMessage[] = [];
  const jobs = { send: async (message: JobMessage) => void queue.push(message), returnIn: async () => undefined };
  const on = (context: ApiContext): JobContext => ({ ...context, objects: bucket, jobs });
  const sound = (): JobContext => on(warmFunction(db, clock));

  /** Executes the job once. If the execution fails, it returns false and puts the message back into the queue. */
  async function run(context: JobContext, job: JobMessage, remainingMs = ample): Promise<boolean> {
    try {
      await runOf(context, job, remainingMs);
      return true;
    } catch {
      queue.push(job);
      return false;
    }
  }

  async function uploaded(caller: Caller, bytes: Uint8Array, input: NewImport = {}): Promise<JobMessage> {
    const { id } = await beginImport(sound(), links, caller, input);
    const job = { kind: "import" as const, companyId: caller.companyId, id };
    bucket.files.set(importKeys.uploaded(job), Uint8Array.from(bytes));
    return job;
  }

  /** Removes all faults. */
  function heal(): void {
    db.plan(() => pass);
    bucket.plan = () => undefined;
  }

  return {
    bucket,
    queue,
    sound,
    clear: (): void => {
      bucket.files.clear();
      bucket.uploads.clear();
      bucket.plan = () => undefined;
      bucket.calls = 0;
      queue.length = 0;
    },
    faulty: (): JobContext => on(contextOn(db.table, clock)),
    run,
    uploaded,
    /** Creates a company, whose owner uploads this file. */
    newUpload: async (bytes: Uint8Array, input?: NewImport) => {
      const company = await newCompany(sound());
      return { ...company, job: await uploaded(company.caller, bytes, input) };
    },
    /** Returns an import as the API shows it. */
    summary: async ({ companyId, id }: JobMessage) => summaryOf(await findImport(sound(), companyId, id)),
    /**
     * Executes `work`, and kills it at call number `last` to the service (table or bucket) that the death names. By default, does not kill
     * it. Returns the number of calls to this service.
     */
    killed: async ([when, service]: JobDeath, work: () => Promise<unknown>, last = Number.POSITIVE_INFINITY) => {
      const from = bucket.calls;
      if (service === "table") db.plan(killedAt(last, when === "before" ? serverError : { kind: "lose reply" }));
      else bucket.plan = (call) => (call - from < last ? undefined : call - from === last ? when : "before");
      await work();
      const calls = service === "table" ? db.calls.length : bucket.calls - from;
      heal();
      return calls;
    },
    heal,
    /** Removes all faults. Then executes the queued jobs, and runs the sweeper, which restarts lost jobs, until no job is left. */
    settle: async (): Promise<void> => {
      heal();
      for (let idle = 0, left = 60; idle < 3; ) {
        if (left-- === 0) throw new Error("a job never ends");
        now.ms += LEASE_MS + 600_000;
        await sweepJobs({ ...sound(), jobs });
        const message = queue.shift();
        idle = message === undefined ? idle + 1 : 0;
        if (message !== undefined) await run(sound(), message);
      }
    },
  };
}

/** The table, the clock and the jobs of a test file. Call it once, at the top of the file. Each test gets an empty bucket and queue. */
export function jobTests(scope?: "file" | "test") {
  const db = faultyDynamoDb(scope);
  const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
  const harness = faultyJobs(db, now);
  beforeEach(() => harness.clear());
  return { db, now, harness };
}
