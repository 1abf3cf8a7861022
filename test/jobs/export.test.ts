/** Tests that an exported file equals the streamed export, even if any call to the table or the bucket fails. */
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import * as keys from "#shared/db/keys.ts";
import { GzipPart, gzipBegin } from "#shared/jobs/export/gzip-parts.ts";
import { exportJob } from "#shared/jobs/export/job.ts";
import type { NewExport } from "#shared/jobs/export/schema.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { runJob } from "#shared/jobs/job.ts";
import { exportKeys } from "#shared/jobs/s3-keys.ts";
import { killPointsOf } from "../harness/kills.ts";
import { beginExport, createProspect, importFile, updateUser } from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { silent } from "./bulk-stage.ts";
import { jobDeaths, jobTests } from "./faulty-jobs.ts";
import { exportedText } from "./import-checks.ts";

const { harness } = jobTests();

/** The number of the current test. It determines at which calls to the table or the bucket the test kills the job. */
let turn = 0;

async function begun(caller: Caller, filter: NewExport = {}): Promise<JobMessage> {
  const { id } = await beginExport(harness.sound(), silent, caller, filter);
  return { kind: "export", companyId: caller.companyId, id };
}
const stored = async ({ companyId, id }: JobMessage) =>
  StoredExport.parse(await harness.sound().table.get(keys.export(companyId, id)));
const fileOf = (job: JobMessage) => harness.bucket.files.get(exportKeys.file(job));

const streamed = ({ caller }: Pick<Company, "caller">) => exportedText(harness.sound(), caller);

async function newFilled(count: number): Promise<Company> {
  const company = await newCompany(harness.sound());
  const context = harness.sound();
  for (let i = 0; i < count; i++)
    await createProspect(context, company.caller, {
      name: `n${i}`,
      assignedToUserId: i % 2 === 0 ? company.repId : null,
    });
  return company;
}

async function expectWhole(company: Company, job: JobMessage, label = ""): Promise<void> {
  expect(await stored(job), label).toMatchObject({ state: "completed" });
  expect(gunzipSync(fileOf(job) ?? Buffer.alloc(0)).toString()).toBe(await streamed(company));
}

test("gzip parts that are compressed separately form one gzip stream (member)", async () => {
  let state = gzipBegin;
  const parts: Buffer[] = [];
  const texts = ["one\r\n".repeat(10_000), "", "two é\r\n", "three"];
  for (const [i, text] of texts.entries()) {
    const part = new GzipPart(state);
    await part.write(text);
    parts.push(await part.finish(i === texts.length - 1));
    state = part.state;
  }
  const whole = Buffer.concat(parts);
  expect(gunzipSync(whole).toString()).toBe(texts.join(""));
  // A gzip file may consist of several members, and each member begins with these bytes. Some programs read only the first member, so the
  // file must have only one.
  expect(whole.indexOf(Buffer.from([0x1f, 0x8b, 8]), 1)).toBe(-1);
});

test.each(jobDeaths)(
  "after a kill %s any call of the %s takes effect, the next execution completes the file",
  { tags: "sized" },
  async (...death) => {
    const company = await newFilled(12);
    const counted = await begun(company.caller);
    const all = await harness.killed(death, () => harness.run(harness.faulty(), counted));
    expect(all).toBeGreaterThan(death[1] === "table" ? 6 : 4);
    for (const last of killPointsOf(all, turn++)) {
      const job = await begun(company.caller);
      await harness.killed(death, () => harness.run(harness.faulty(), job), last);
      if (fileOf(job) === undefined) expect(await stored(job)).toMatchObject({ state: "running" });
      await harness.settle();
      await expectWhole(company, job, `killed at call ${last}`);
    }
  },
);

test("an export starts over if the bucket loses the stored order of the rows, or the order and the parts, between executions", async () => {
  const company = await newFilled(6);
  for (const isLost of [() => true, (key: string) => key.endsWith(".order")]) {
    const job = await begun(company.caller);
    const from = harness.bucket.calls;
    // This execution fails from its third call to the bucket on. Its first two calls have stored the order of the rows and begun the file.
    harness.bucket.plan = (number) => (number - from <= 2 ? undefined : "before");
    await harness.run(harness.sound(), job);
    harness.bucket.plan = () => undefined;
    for (const key of harness.bucket.files.keys()) if (isLost(key)) harness.bucket.files.delete(key);
    if (isLost("")) harness.bucket.uploads.clear();
    await harness.settle();
    expect((await stored(job)).total).toBe(6);
    await expectWhole(company, job);
    expect(harness.bucket.uploads.size).toBe(0);
  }
});

test("a rep's file contains what the rep may see; a user who may see less when the job runs gets no file", async () => {
  const company = await newFilled(6);
  const rep: Caller = { companyId: company.caller.companyId, userId: company.repId, role: "sales", permissions: [] };
  const own = await begun(rep);
  const viewer = { ...rep, permissions: ["canViewAllProspects" as const] };
  const all = await begun(viewer);
  await harness.run(harness.sound(), own);
  await harness.run(harness.sound(), all);
  expect(gunzipSync(fileOf(own) ?? Buffer.alloc(0)).toString()).toBe(await streamed({ caller: rep }));
  expect((await stored(own)).total).toBe(3);
  // The request's caller has the permission `canViewAllProspects`, but the user in the table does not have it. The job uses the
  // permissions in the table, so it must fail.
  expect(await stored(all)).toMatchObject({ state: "failed" });
  expect(fileOf(all)).toBeUndefined();
  const late = await begun(rep);
  await updateUser(harness.sound(), company.caller, company.repId, { isActive: false });
  await harness.run(harness.sound(), late);
  expect(await stored(late)).toMatchObject({ state: "failed" });
});

test("executions with time for only one part hand over by a message until the file is complete", async () => {
  const company = await newCompany(harness.sound());
  const { companyId } = company.caller;
  const rows = Array.from({ length: 1_700 }, (_, i) => `n${i},39.${i},-104.${i}`);
  await importFile(harness.sound(), company.caller, Buffer.from(`name,lat,lng\n${rows.join("\n")}\n`));
  const job = await begun(company.caller);
  let runs = 0;
  for (harness.queue.push(job); harness.queue.length > 0; runs++) {
    harness.queue.length = 0;
    await runJob(exportJob(0), harness.sound(), { companyId, id: job.id }, () => 1_000);
  }
  expect(runs).toBeGreaterThan(3);
  expect((await stored(job)).parts?.tags).toHaveLength(5);
  await expectWhole(company, job);
});
