/** Tests the counts that an import job shows while it runs and after it was cancelled, and imports whose writes fail. */
import { setImmediate } from "node:timers/promises";
import { beforeEach, expect, test, vi } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { ATTEMPTS } from "#shared/aws/client-config.ts";
import { iso } from "#shared/clock.ts";
import type { JobContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ErrorReport, ReportLost } from "#shared/jobs/import/error-report.ts";
import { findImport, summaryOf } from "#shared/jobs/import/requests.ts";
import type { ImportSummary } from "#shared/jobs/import/schema.ts";
import { newImport, StoredImport } from "#shared/jobs/import/stored.ts";
import { CHANGES_AT_ONCE, LEASE_MS } from "#shared/jobs/job.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { interrupted } from "../harness/killable.ts";
import { cancelImport, importFile } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { faultyJobs } from "./faulty-jobs.ts";

const db = faultyDynamoDb();
let ms = Date.parse("2030-01-01T00:00:00.000Z");
/** A clock that advances each time it is read, so that a job reports its progress after every group of rows. */
const now = {
  get ms() {
    ms += 40;
    return ms;
  },
  set ms(time: number) {
    ms = time;
  },
};
const harness = faultyJobs(db, now);
const { summary } = harness;
beforeEach(() => harness.clear());

/** Number of rows that need two batches, because an import writes batches of 2 048 rows. */
const ROWS_OF_TWO_BATCHES = 2_100;
const UPDATED = 200;
const CREATED = 3;
const update = { matchBy: "sourceId", onMatch: "update" } as const;
const fileOf = (word: string, count: number): Buffer =>
  Buffer.from(`sourceId,name,lat,lng\n${Array.from({ length: count }, (_, i) => `S${i},${word}${i},1,2\n`).join("")}`);

const named = async (caller: Caller, word: string): Promise<number> =>
  (await listProspects(harness.sound(), caller, ListQuery.parse({ search: word, pageSize: "1" }))).total;

/** Wraps a context so that `report` receives every state of the job that is written to the table. */
function reporting(context: JobContext, report: (shown: ImportSummary) => Promise<void>): JobContext {
  const { table } = context;
  const write = async (entry: Parameters<typeof table.write>[0]): Promise<Item | undefined> => {
    const item = await table.write(entry);
    if (item?.type === "import") await report(summaryOf(StoredImport.parse(item)));
    return item;
  };
  return { ...context, table: { ...table, write } };
}

async function seeded() {
  const { caller } = await newCompany(harness.sound());
  await importFile(harness.sound(), caller, fileOf("old", UPDATED));
  const job = await harness.uploaded(caller, fileOf("new", UPDATED + CREATED), update);
  return { caller, job };
}

test("`updated` and `written` grow with the visible updates, and `imported` is shown at the end", async () => {
  const { caller, job } = await seeded();
  const seen: { updated: number; written: number; imported: number; visible: number }[] = [];
  const context = reporting(harness.sound(), async ({ updated, written, imported }) => {
    seen.push({ updated, written, imported, visible: await named(caller, "new") });
  });
  expect(await harness.run(context, job)).toBe(true);
  for (const { updated, written, imported, visible } of seen) {
    expect(visible).toBe(updated);
    expect(written).toBeGreaterThanOrEqual(updated);
    expect(imported).toBe(0);
  }
  expect([...new Set(seen.map(({ updated }) => updated))]).toEqual([0, 96, 192, 200]);
  const total = UPDATED + CREATED;
  expect(await summary(job)).toMatchObject({ state: "completed", updated: UPDATED, imported: CREATED, written: total });
  expect(await named(caller, "new")).toBe(total);
  const files = [...harness.bucket.files.keys()].filter((key) => key.includes(`/${job.id}/`));
  expect(files, "the files that only the job needs are removed").toEqual([]);
});

test("a check that runs out of time continues after its last rows, and its executions do not count as fruitless", async () => {
  const { caller, job } = await harness.newUpload(fileOf("row", ROWS_OF_TWO_BATCHES));
  for (const processed of [2_048, ROWS_OF_TWO_BATCHES]) {
    await harness.run(harness.sound(), job, () => 1_000);
    expect(await summary(job)).toMatchObject({ state: "running", processed, written: 0 });
    expect(await findImport(harness.sound(), caller.companyId, job.id)).toMatchObject({ runs: 0 });
  }
});

test("a job changes several prospects at the same time, and in a small account one after the other", async () => {
  async function mostAtOnce(expected: number): Promise<number> {
    const { job } = await seeded();
    const context = harness.sound();
    let [running, most] = [0, 0];
    // No update ends before the expected number of updates has started, so the result does not depend on the speed of the table.
    const started = Promise.withResolvers<void>();
    const transact: JobContext["table"]["transact"] = async (writes) => {
      most = Math.max(most, ++running);
      if (most >= expected) started.resolve();
      await started.promise;
      await context.table.transact(writes).finally(() => running--);
    };
    await harness.run({ ...context, table: { ...context.table, transact } }, job);
    expect(await summary(job)).toMatchObject({ state: "completed", updated: UPDATED });
    return most;
  }
  expect(await mostAtOnce(CHANGES_AT_ONCE)).toBe(CHANGES_AT_ONCE);
  vi.stubEnv("CHANGES_AT_ONCE", "1");
  expect(await mostAtOnce(1)).toBe(1);
  vi.unstubAllEnvs();
});

test("a cancelled job keeps its updates, and shows those that it had reported", async () => {
  const { caller, job } = await seeded();
  const context = reporting(harness.sound(), async ({ state, updated }) => {
    if (state === "running" && updated >= 96) await cancelImport(harness.sound(), caller, job.id);
  });
  await harness.run(context, job);
  await harness.settle();
  expect(await summary(job)).toMatchObject({ state: "cancelled", updated: 96, written: 96, imported: 0 });
  // When the import was cancelled, the job was already changing the second group of 96 prospects. It has completed this group.
  expect(await named(caller, "new")).toBe(192);
});

test("a job that is cancelled while its first execution begins stays cancelled", async () => {
  const { caller, job } = await harness.newUpload(fileOf("new", 3));
  const context = harness.sound();
  const table = interrupted(context.table, "write", () => cancelImport(harness.sound(), caller, job.id));
  await harness.run({ ...context, table }, job);
  await harness.settle();
  expect(await summary(job)).toMatchObject({ state: "cancelled", imported: 0 });
  expect(await named(caller, "new")).toBe(0);
});

test("after the cancellation of a job whose lease is renewed meanwhile, the next execution waits for the end of the new lease", async () => {
  const { caller, job } = await harness.newUpload(fileOf("new", 3));
  await harness.run(harness.sound(), job, () => 1_000);
  const key = keys.import(job.companyId, job.id);
  const { table, ...rest } = harness.sound();
  const until = Date.parse("2040-01-01T00:00:00.000Z");
  const renewed = (ms: number) => table.write({ update: key, change: { set: { runsUntil: iso(ms) } } });
  await renewed(until);
  let reads = 0;
  const get: typeof table.get = async (asked, ...options) => {
    const item = await table.get(asked, ...options);
    if (asked.sk === key.sk && reads++ === 0) await renewed(until + 5_000);
    return item;
  };
  await cancelImport({ ...rest, table: { ...table, get } }, caller, job.id);
  expect(await table.get(key)).toMatchObject({ state: "cancelled", runsUntil: iso(until + 5_001) });
});

test("a job fails if this release accepts more rows than the release that has checked the file", async () => {
  const { caller, job } = await harness.newUpload(fileOf("new", 5));
  await harness.run(harness.sound(), job, () => 1_000);
  const { table } = harness.sound();
  const stored = StoredImport.parse(await table.get(keys.import(job.companyId, job.id)));
  const progress = { ...stored.progress, done: { ...stored.progress.done, prospect: 4 } };
  await table.batchPut([{ ...keys.import(job.companyId, job.id), ...stored, progress }]);
  // The execution that ran out of time has sent the message for the next execution.
  expect(harness.queue).toEqual([job]);
  await harness.run(harness.sound(), job);
  const failure = expect.stringContaining("Import the file again.");
  expect(await summary(job)).toMatchObject({ state: "failed", failure, imported: 0 });
  expect(await named(caller, "new")).toBe(0);
});

test("a job that has written its rows does not read its file again to publish them", async () => {
  const { caller, job } = await harness.newUpload(fileOf("row", 3));
  await harness.run(harness.sound(), job, () => 250_000);
  expect(await summary(job)).toMatchObject({ state: "running", written: 3, imported: 0 });
  const reads: string[] = [];
  const { objects, ...rest } = harness.sound();
  const read: typeof objects.read = (key, etag) => {
    reads.push(key);
    return objects.read(key, etag);
  };
  expect(await harness.run({ ...rest, objects: { ...objects, read } }, job)).toBe(true);
  expect(reads).toEqual([]);
  expect(await named(caller, "row")).toBe(3);
});

test("a job whose function dies in each execution fails after ten of them", async () => {
  const { caller, job } = await harness.newUpload(fileOf("row", 3));
  const { objects, ...rest } = harness.sound();
  const { promise: never } = Promise.withResolvers<void>();
  for (let died = 0; died < 10; died++) {
    expect(await summary(job)).not.toMatchObject({ state: "failed" });
    await new Promise<void>((dies) => {
      const read: typeof objects.read = async function* (key, etag) {
        dies();
        await never;
        yield* objects.read(key, etag);
      };
      void harness.run({ ...rest, objects: { ...objects, read } }, job);
    });
    now.ms += LEASE_MS;
  }
  expect(await harness.run(harness.sound(), job)).toBe(true);
  expect(await summary(job)).toMatchObject({ state: "failed", failure: "The import could not be completed." });
  expect(await named(caller, "row")).toBe(0);
});

test("rows that cannot be written while the next ones are read fail only their execution, which begins again after the last checkpoint", async () => {
  const { caller, job } = await harness.newUpload(fileOf("row", ROWS_OF_TWO_BATCHES));
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>();
  let attempts = 0;
  db.plan((operation) => {
    if (!/^Batch(?:Write|Execute)/.test(operation)) return pass;
    if (++attempts === ATTEMPTS) fail();
    return serverError;
  });
  const { objects, ...rest } = harness.faulty();
  const read: typeof objects.read = async function* (key, etag) {
    for await (const piece of objects.read(key, etag)) {
      yield piece.subarray(0, piece.length - 10);
      const row = await harness.sound().table.get(keys.import(job.companyId, job.id));
      if (StoredImport.parse(row).progress.step === "write") {
        await failed;
        // Waits, so that the error of the table arrives before the next rows are read.
        await setImmediate();
      }
      yield piece.subarray(piece.length - 10);
    }
  };
  expect(await harness.run({ ...rest, objects: { ...objects, read } }, job)).toBe(false);
  await harness.settle();
  expect(await summary(job)).toMatchObject({ state: "completed", imported: ROWS_OF_TWO_BATCHES });
  expect(await named(caller, "row")).toBe(ROWS_OF_TWO_BATCHES);
});

test("if the bucket has deleted the parts of an error report, the next part and the end of the report throw ReportLost", async () => {
  const faults = (rows: number) => Array.from({ length: rows }, (_, row) => ({ row, fault: "x".repeat(1_000_000) }));
  const stored = newImport({ companyId: 1, userId: 3, role: "owner", permissions: [] }, 2, 0, {});
  const report = await ErrorReport.open(harness.bucket, stored, 0);
  await report.add(faults(7));
  const later = { ...stored, progress: { ...stored.progress, report: await report.checkpoint(7), skipped: 7 } };
  harness.bucket.uploads.clear();
  await expect(report.add(faults(7))).rejects.toBeInstanceOf(ReportLost);
  const reopened = await ErrorReport.open(harness.bucket, later, 0);
  await expect(reopened.finish()).rejects.toBeInstanceOf(ReportLost);
  harness.bucket.files.clear();
  await expect(ErrorReport.open(harness.bucket, later, 0)).rejects.toBeInstanceOf(ReportLost);
});
