/** Tests that a job continues after a fault of the deployment is repaired: a missing table or queue, or wrong permissions or keys. */
import { describe, expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { findImport } from "#shared/jobs/import/requests.ts";
import { MAX_FRUITLESS_RUNS } from "#shared/jobs/job.ts";
import { exportKeys, importKeys } from "#shared/jobs/s3-keys.ts";
import { beginExport, createProspect } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { newJob, newStage, rowsOf, runOnce, storedJob } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

/** Number of failing executions in each test. A fault outside the deployment would end the job after `MAX_FRUITLESS_RUNS` of them. */
const RUNS = MAX_FRUITLESS_RUNS + 3;
const FILE = Buffer.from("name,lat,lng\nn0,39.7,-104.9\nn1,39.7,-104.8\n");
const { summary } = harness;
const hasUpload = (job: JobMessage): boolean => harness.bucket.files.has(importKeys.uploaded(job));

describe.each([
  "AccessDeniedException",
  "ExpiredTokenException",
  "UnrecognizedClientException",
  "InvalidSignatureException",
  "ResourceNotFoundException",
  "KMSAccessDeniedException",
])("while the table answers %s", (code) => {
  /** Lets the table refuse an operation. The job can still write its own row, in which it counts its executions. */
  const refuse = (refused: string): void =>
    db.plan((operation) => (operation === refused ? { kind: "error", code, status: 400 } : { kind: "pass" }));

  /** Executes the job several times. Each execution must fail, so that its message returns to the queue. */
  async function expectFruitless(run: () => Promise<boolean>): Promise<void> {
    for (let runs = 0; runs < RUNS; runs++) {
      expect(await run()).toBe(false);
      now.ms += 1_000;
    }
  }

  test("an import waits and keeps its upload, and completes afterwards", async () => {
    const { job } = await harness.newUpload(FILE);
    refuse("BatchWriteItem");
    await expectFruitless(() => harness.run(harness.faulty(), job));
    expect(await summary(job)).toMatchObject({ state: "running" });
    expect(hasUpload(job)).toBe(true);
    await harness.settle();
    expect(await summary(job)).toMatchObject({ state: "completed", imported: 2 });
  });

  test("an export waits, and completes afterwards", async () => {
    const company = await newCompany(harness.sound());
    await createProspect(harness.sound(), company.caller, { name: "n0" });
    const { companyId } = company.caller;
    const { id } = await beginExport(harness.sound(), harness.sound().jobs, company.caller, {});
    const job = { kind: "export", companyId, id } as const;
    const stored = async () => StoredExport.parse(await harness.sound().table.get(keys.export(companyId, id)));
    refuse("Query");
    await expectFruitless(() => harness.run(harness.faulty(), job));
    expect(await stored()).toMatchObject({ state: "running" });
    await harness.settle();
    expect(await stored()).toMatchObject({ state: "completed", total: 1 });
    expect(harness.bucket.files.has(exportKeys.file(job))).toBe(true);
  });

  test("a bulk job waits and counts no record as failed, and completes afterwards", async () => {
    const stage = await newStage(harness, 6);
    const [statusId = 0] = stage.statusIds.slice(-1);
    const job = await newJob(harness, stage, { statusId });
    refuse("TransactWriteItems");
    await expectFruitless(() => runOnce(harness.faulty(), stage, job));
    expect(await storedJob(harness, job)).toMatchObject({ state: "running", changed: 0, failed: 0 });
    db.plan(() => ({ kind: "pass" }));
    expect(await runOnce(harness.sound(), stage, job)).toBe(true);
    expect(await storedJob(harness, job)).toMatchObject({ state: "completed", changed: 6, failed: 0 });
    expect((await rowsOf(harness, stage)).map((row) => row.statusId)).toEqual(stage.ids.map(() => statusId));
  });
});

test("an import waits while its queue refuses the messages, and completes afterwards", async () => {
  const { job } = await harness.newUpload(FILE);
  const refusal = Object.assign(new Error("as planned"), { name: "QueueDoesNotExist" });
  const jobs: JobContext["jobs"] = { send: () => Promise.reject(refusal), returnIn: async () => undefined };
  // Each execution has only one second left, so it must send a message with which another execution continues the import. The queue refuses
  // this message.
  for (let run = 0; run < RUNS; run++) {
    expect(await harness.run({ ...harness.sound(), jobs }, job, () => 1_000)).toBe(false);
    now.ms += 1_000;
  }
  expect(await summary(job)).toMatchObject({ state: "running" });
  await harness.settle();
  expect(await summary(job)).toMatchObject({ state: "completed", imported: 2 });
});

test("if the bucket has deleted the parts of the error report, an import checks the whole file again and keeps its upload", async () => {
  const bad = Array.from({ length: 2_500 }, (_, i) => `bad${i},no number,0`);
  const { job } = await harness.newUpload(Buffer.concat([FILE, Buffer.from(bad.join("\n"))]));
  expect(await harness.run(harness.sound(), job, () => 1_000)).toBe(true);
  const { progress } = await findImport(harness.sound(), job.companyId, job.id);
  const { rest = "" } = progress.report ?? {};
  expect(harness.bucket.files.delete(rest)).toBe(true);
  expect(await harness.run(harness.sound(), job)).toBe(true);
  expect(await summary(job)).toMatchObject({ state: "running", processed: 0, skipped: 0 });
  expect(hasUpload(job)).toBe(true);
  await harness.settle();
  expect(await summary(job)).toMatchObject({ state: "completed", imported: 2, skipped: 2_500, processed: 2_502 });
  const report = Buffer.from(harness.bucket.files.get(importKeys.report(job)) ?? []).toString();
  expect(report.trimEnd().split("\r\n")).toHaveLength(2_501);
});
