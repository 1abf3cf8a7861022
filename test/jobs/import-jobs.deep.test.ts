/** Tests import jobs while calls fail. Before the last execution no row may be visible, and after it each row must exist once. */
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { findImport, LOOK_MS } from "#shared/jobs/import/requests.ts";
import { LEASE_MS, sweepJobs } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { getNote } from "#shared/prospects/notes.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { killPoints, killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { cancelImport, importFile, updateUser } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { jobDeaths, jobTests } from "./faulty-jobs.ts";
import { fileOf, importChecks } from "./import-checks.ts";

const { db, now, harness } = jobTests();

/** The number of the current test. It determines at which calls the test kills the job. */
let turn = 0;

const { summary } = harness;
const { list, expectOnce, expectNothing, left } = importChecks(db, harness);

/**
 * Number of valid rows, and the write units for the job itself. The long test (`wide`) needs several batches of 2 048 rows. In the short
 * test, the units for the job are a large share of all units, so they are added to the limit of the test.
 */
const { many: MANY, jobUnits } = sized({ short: { many: 300, jobUnits: 40 }, wide: { many: 5_000, jobUnits: 0 } });

test(`${MANY} rows become prospects in their order, for 1.1 write units each and one more for each note`, {
  tags: "sized",
}, async () => {
  const { job, ...company } = await harness.newUpload(fileOf(MANY, 150));
  const { usage } = await metered(() => harness.run(harness.sound(), job));
  expect(await summary(job)).toMatchObject({ state: "completed", processed: MANY + 150, imported: MANY, skipped: 150 });
  await expectOnce(company, MANY);
  expect(usage.writeUnits).toBeLessThanOrEqual(1.1 * MANY + Math.ceil(MANY / 3) + jobUnits);
  const report = Buffer.from(harness.bucket.files.get(importKeys.report(job)) ?? []).toString();
  expect(report.split("\r\n")).toHaveLength(152);
  expect(report).toContain(`${MANY + 2},`);
  expect([...harness.bucket.files.keys()].filter((key) => key.includes("rows-"))).toEqual([]);
});

test.each(jobDeaths)(
  "killed %s any call of the %s takes effect, an import shows no row early, and the next execution completes each row once",
  { tags: "sized" },
  async (...death) => {
    const COUNT = 40;
    const counting = await newCompany(harness.sound());
    const first = await harness.uploaded(counting.caller, fileOf(COUNT, 120));
    const all = await harness.killed(death, () => harness.run(harness.faulty(), first));
    const pure = await left(counting);
    expect(all).toBeGreaterThan(death[1] === "table" ? 15 : 6);
    for (const last of killPointsOf(all, turn++)) {
      const { job, ...company } = await harness.newUpload(fileOf(COUNT, 120));
      await harness.killed(death, () => harness.run(harness.faulty(), job), last);
      if ((await summary(job)).state === "completed") await expectOnce(company, COUNT);
      else await expectNothing(company);
      await harness.settle();
      expect(await summary(job), `killed at call ${last}`).toMatchObject({ state: "completed", imported: COUNT });
      await expectOnce(company, COUNT);
      expect((await left(company)).length, `killed at call ${last}`).toBe(pure.length);
    }
  },
);

test("an import and its upload survive a bucket that refuses every call, even after the time for the upload", async () => {
  const { job, ...company } = await harness.newUpload(fileOf(40));
  harness.bucket.plan = () => "before";
  for (let run = 0; run < 25; run++) {
    now.ms += LEASE_MS + 3_600_000;
    expect(await harness.run(harness.sound(), job)).toBe(false);
  }
  expect(await summary(job)).toMatchObject({ state: "awaiting_upload" });
  harness.bucket.plan = () => undefined;
  expect(harness.bucket.files.has(importKeys.uploaded(job))).toBe(true);
  await harness.settle();
  expect(await summary(job)).toMatchObject({ state: "completed", imported: 40 });
  await expectOnce(company, 40);
});

describe("hand-over", () => {
  test("executions with time for one batch write every row once, in its order", { tags: "sized" }, async () => {
    // A batch also ends after a million characters of notes. Every third row has a note, so the short file needs two batches.
    const { count, more } = sized({
      short: { count: 330, more: "x".repeat(limits.note - 10) },
      wide: { count: 4_500, more: "" },
    });
    const { job, ...company } = await harness.newUpload(fileOf(count, 130, "n", more));
    let runs = 0;
    for (harness.queue.push(job); harness.queue.length > 0; runs++) {
      const [message = job] = harness.queue.splice(0, 1);
      // Every execution has only one second left, so it must stop after each batch. The next execution continues. Only the last step
      // (`publish`) cannot be divided.
      const { progress } = await findImport(harness.sound(), job.companyId, job.id);
      const isLast = progress.step === "publish";
      expect(await harness.run(harness.sound(), message, () => (isLast ? 900_000 : 1_000))).toBe(true);
      expect(runs).toBeLessThan(20);
    }
    expect(runs).toBeGreaterThan(sized({ short: 3, wide: 5 }));
    const counts = { state: "completed", processed: count + 130, imported: count, skipped: 130 };
    expect(await summary(job)).toMatchObject(counts);
    await expectOnce(company, count);
    const notes = (await db.keysOf(`C#${job.companyId}#P#`)).filter(({ sk }) => sk.startsWith("N#"));
    expect(notes).toHaveLength(count / 3);
    for (const { sk } of notes.filter((_, i) => i % 50 === 0)) {
      const id = Number(sk.split("#").at(-1));
      expect(await getNote(harness.sound(), company.caller, id)).toMatchObject({ id });
    }
    const report = Buffer.from(harness.bucket.files.get(importKeys.report(job)) ?? []).toString();
    expect(new Set(report.split("\r\n")).size).toBe(132);
  });

  test("the sweep replaces a lost message", async () => {
    const { job, ...company } = await harness.newUpload(fileOf(10));
    await harness.run(harness.sound(), job, () => 1_000);
    harness.queue.length = 0;
    await harness.settle();
    await expectOnce(company, 10);
  });
});

test("the sweep starts another execution if the first one dies before it has written anything", async () => {
  const { job, ...company } = await harness.newUpload(fileOf(10));
  const sweep = () => sweepJobs(harness.sound());
  db.plan(() => serverError);
  expect(await harness.run(harness.faulty(), job)).toBe(false);
  db.plan(() => pass);
  harness.queue.length = 0;
  expect(await sweep()).toBe(0);
  now.ms += LOOK_MS + 60_000;
  await sweep();
  expect(harness.queue).toContainEqual(job);
  await harness.run(harness.sound(), job);
  await expectOnce(company, 10);
});

test("the sweep looks for a slow upload until it arrives, and a message of an unknown import changes nothing", async () => {
  const { job, ...company } = await harness.newUpload(fileOf(10));
  expect(await harness.run(harness.sound(), { ...job, id: job.id + 1 })).toBe(true);
  const file = importKeys.uploaded(job);
  const bytes = harness.bucket.files.get(file) ?? Buffer.alloc(0);
  harness.bucket.files.delete(file);
  for (let look = 0; look < 3; look++) {
    now.ms += 7 * 60_000;
    await sweepJobs(harness.sound());
    expect(harness.queue.splice(0)).toContainEqual(job);
    await harness.run(harness.sound(), job);
    expect(await summary(job)).toMatchObject({ state: "awaiting_upload" });
  }
  harness.bucket.files.set(file, bytes);
  await harness.settle();
  await expectOnce(company, 10);
});

test("an event after completion and an execution that outlived its lease change nothing", async () => {
  const { job, ...company } = await harness.newUpload(fileOf(30));
  let stalled = false;
  db.plan((operation) => {
    if (operation !== "BatchWriteItem" || stalled) return pass;
    stalled = true;
    const meanwhile = async () => {
      now.ms += LEASE_MS + 1;
      await harness.run(harness.sound(), job);
    };
    return { kind: "late", meanwhile };
  });
  await harness.run(harness.faulty(), job);
  db.plan(() => pass);
  expect(stalled).toBe(true);
  await expectOnce(company, 30);
  await harness.run(harness.sound(), job);
  await expectOnce(company, 30);
});

describe("a failed or cancelled import", () => {
  test.each([
    ["is not text", Buffer.from([0xff, 0x00, 0xe9])],
    ["ends within quotes, after good rows", Buffer.concat([fileOf(10), Buffer.from('"x')])],
    ["names no column", Buffer.from("a,b\n1,2\n")],
    ["is empty", Buffer.from("")],
  ])("reports why and leaves nothing if its file %s", async (_, bytes) => {
    const { job, ...company } = await harness.newUpload(bytes);
    await harness.run(harness.sound(), job);
    expect(await summary(job)).toMatchObject({ state: "failed", imported: 0, written: 0, failure: expect.any(String) });
    await expectNothing(company);
    expect(await left(company)).toEqual([]);
    expect([...harness.bucket.files.keys()].filter((key) => key.includes(`/${job.id}`))).toEqual([]);
  });

  test("fails if no file is uploaded in time", async () => {
    const { job, ...company } = await harness.newUpload(fileOf(3));
    harness.bucket.files.delete(importKeys.uploaded(job));
    now.ms += limits.fileLinkSeconds * 1_000 + limits.uploadMs - 1;
    await harness.run(harness.sound(), job);
    expect(await summary(job)).toMatchObject({ state: "awaiting_upload" });
    now.ms += 1;
    await harness.settle();
    expect(await summary(job)).toMatchObject({ state: "failed", failure: "The file was not uploaded in time." });
    expect(await left(company)).toEqual([]);
  });

  test("fails if its user lost the permission or was disabled before the upload", async () => {
    const company = await newCompany(harness.sound());
    const { companyId } = company.caller;
    const permissions = ["canManageProspects" as const];
    const rep: Caller = { companyId, userId: company.repId, role: "sales", permissions };
    const change = (to: Parameters<typeof updateUser>[3]) =>
      updateUser(harness.sound(), company.caller, company.repId, to);
    await change({ permissions });
    const good = await harness.uploaded(rep, Buffer.from("name,lat,lng\nn0,1,2\n"));
    await harness.run(harness.sound(), good);
    expect(await summary(good)).toMatchObject({ state: "completed", imported: 1 });
    for (const to of [{ permissions: [] }, { permissions, isActive: false }]) {
      const job = await harness.uploaded(rep, fileOf(3));
      await change(to);
      await harness.run(harness.sound(), job);
      const failure = expect.stringContaining("may no longer import");
      expect(await summary(job)).toMatchObject({ state: "failed", failure });
      expect((await list(harness.sound(), company)).total).toBe(1);
      expect([...harness.bucket.files.keys()].filter((key) => key.includes(`/${job.id}`))).toEqual([]);
    }
  });

  test("that is cancelled at any call soon leaves no rows, and was never visible", { tags: "sized" }, async () => {
    for (const last of killPoints(turn++)) {
      const { job, ...company } = await harness.newUpload(fileOf(40));
      let isCancelled = false;
      db.plan((_operation, number) => {
        if (number !== last) return pass;
        return {
          kind: "late",
          meanwhile: async () => {
            const refused = () => undefined;
            const cancelled = await cancelImport(harness.sound(), company.caller, job.id).catch(refused);
            isCancelled = cancelled !== undefined;
          },
        };
      });
      await harness.run(harness.faulty(), job);
      const calls = db.calls.length;
      db.plan(() => pass);
      if (isCancelled) {
        expect(await summary(job), `cancelled at call ${last}`).toMatchObject({ state: "cancelled", imported: 0 });
        await expectNothing(company);
        await harness.settle();
        await expectNothing(company);
        expect(await left(company), `cancelled at call ${last}`).toEqual([]);
      } else await expectOnce(company, 40);
      if (last > calls) break;
    }
  });

  test("if the function of an import within one request dies, the sweep removes the rows of the import", async () => {
    let most = 0;
    for (const last of [9, 11, 13, 15, 17]) {
      const company = await newCompany(harness.sound());
      const request = () => importFile(harness.faulty(), company.caller, fileOf(40)).catch(() => undefined);
      await harness.killed(["before", "table"], request, last);
      const { length } = await left(company);
      if (length === 0) continue;
      most = Math.max(most, length);
      await harness.settle();
      await expectNothing(company);
      expect(await left(company), `killed at call ${last}`).toEqual([]);
    }
    expect(most).toBeGreaterThan(40);
  });

  test("a dry run reports its result and writes nothing", async () => {
    const { job, ...company } = await harness.newUpload(fileOf(40, 2), { dryRun: true });
    await harness.run(harness.sound(), job);
    const shown = await summary(job);
    expect(shown).toMatchObject({ state: "completed", dryRun: true, imported: 40, skipped: 2, written: 0 });
    await expectNothing(company);
    expect(await left(company)).toEqual([]);
    expect((await harness.sound().table.get(keys.import(job.companyId, job.id)))?.dueAt).toBeUndefined();
  });
});
