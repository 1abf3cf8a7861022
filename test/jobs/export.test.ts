/** Exports into files, on a table and a bucket that fail: whatever dies, the file is the one that would have been streamed. */
import { gunzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobMessage } from "#shared/aws/job-queue.ts";
import { keys } from "#shared/db/keys.ts";
import { GzipPart, gzipBegin } from "#shared/jobs/export/gzip-parts.ts";
import { runExport } from "#shared/jobs/export/job.ts";
import { beginExport } from "#shared/jobs/export/requests.ts";
import type { NewExport } from "#shared/jobs/export/schema.ts";
import { StoredExport } from "#shared/jobs/export/schema.ts";
import { importFile } from "#shared/jobs/import/import.ts";
import { LEASE_MS } from "#shared/jobs/lease.ts";
import { exportKeys } from "#shared/jobs/s3-keys.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { createProspect } from "#shared/prospects/write.ts";
import { updateUser } from "#shared/reference/change-user.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type Fault, pass, serverError } from "../harness/faulty-dynamodb.ts";
import { killPointsOf } from "../harness/kills.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { type JobScene, jobScene } from "./job-scene.ts";

const db = faultyDynamoDb();
let scene: JobScene;
const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
beforeEach(() => {
  scene = jobScene(db, now);
});

/** Tests of the same work strike at other calls. */
let turn = 0;

async function begun(caller: Caller, filter: NewExport = {}): Promise<JobMessage> {
  const { id } = await beginExport(
    scene.sound(),
    { send: async () => undefined, returnIn: async () => undefined },
    caller,
    filter,
  );
  return { kind: "export", companyId: caller.companyId, id };
}
const stored = async ({ companyId, id }: JobMessage) =>
  StoredExport.parse(await scene.sound().table.get(keys.export(companyId, id)));
const fileOf = ({ companyId, id }: JobMessage) => scene.bucket.files.get(exportKeys.file(companyId, id));

async function streamed({ caller }: Pick<Company, "caller">, query: Record<string, string> = {}): Promise<string> {
  let text = "";
  for await (const piece of await exportProspects(scene.sound(), caller, ProspectFilter.parse(query))) text += piece;
  return text;
}

/** A company of prospects with names that do not pack. */
async function newFilled(count: number): Promise<Company> {
  const company = await newCompany(scene.sound());
  const context = scene.sound();
  for (let i = 0; i < count; i++)
    await createProspect(context, company.caller, {
      name: `n${i}`,
      assignedToUserId: i % 2 === 0 ? company.repId : null,
    });
  return company;
}

async function expectWhole(company: Company, job: JobMessage): Promise<void> {
  expect(await stored(job)).toMatchObject({ state: "completed" });
  expect(gunzipSync(fileOf(job) ?? Buffer.alloc(0)).toString()).toBe(await streamed(company));
}

test("a bucket that refuses every call for hours ends no export", async () => {
  const company = await newFilled(6);
  const job = await begun(company.caller);
  scene.bucket.plan = () => "before";
  for (let run = 0; run < 25; run++) {
    now.ms += LEASE_MS + 300_000;
    expect(await scene.run(scene.sound(), job)).toBe(false);
  }
  scene.bucket.plan = () => undefined;
  await scene.settle();
  await expectWhole(company, job);
});

test("parts of a gzip file, each packed for itself, are one member", async () => {
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
  // A second member would begin so.
  expect(whole.indexOf(Buffer.from([0x1f, 0x8b, 8]), 1)).toBe(-1);
});

test.each([
  ["before", serverError],
  ["after", { kind: "lose reply" }],
] satisfies [string, Fault][])(
  "killed %s each call of the table takes effect: the whole file after the next run",
  { tags: "sized" },
  async (_, death) => {
    const company = await newFilled(12);
    let all = 0;
    db.plan(() => {
      all++;
      return pass;
    });
    await scene.run(scene.faulty(), await begun(company.caller));
    expect(all).toBeGreaterThan(6);
    for (const last of killPointsOf(all, turn++)) {
      const job = await begun(company.caller);
      db.plan((_operation, number) => (number < last ? pass : number === last ? death : serverError));
      await scene.run(scene.faulty(), job);
      db.plan(() => pass);
      if (fileOf(job) === undefined) expect(await stored(job)).toMatchObject({ state: "running" });
      await scene.settle();
      await expectWhole(company, job);
    }
  },
);

test.each(["before", "after"] as const)(
  "killed %s each call of the bucket takes effect: the whole file after the next run",
  { tags: "sized" },
  async (death) => {
    const company = await newFilled(12);
    const before = scene.bucket.calls;
    await scene.run(scene.sound(), await begun(company.caller));
    const all = scene.bucket.calls - before;
    expect(all).toBeGreaterThan(4);
    for (const last of killPointsOf(all, turn++)) {
      const job = await begun(company.caller);
      const from = scene.bucket.calls;
      scene.bucket.plan = (number) => (number - from < last ? undefined : number - from === last ? death : "before");
      await scene.run(scene.sound(), job);
      await scene.settle();
      expect(await stored(job), `killed at call ${last}`).toMatchObject({ state: "completed" });
      expect(gunzipSync(fileOf(job) ?? Buffer.alloc(0)).toString()).toBe(await streamed(company));
    }
  },
);

test("what the bucket kept between two runs is lost, all of it or the order alone: the file is made anew", async () => {
  const company = await newFilled(6);
  for (const isLost of [() => true, (key: string) => key.endsWith(".order")]) {
    const job = await begun(company.caller);
    const from = scene.bucket.calls;
    // Dead when it has decided what is in the file, and begun it.
    scene.bucket.plan = (number) => (number - from <= 2 ? undefined : "before");
    await scene.run(scene.sound(), job);
    scene.bucket.plan = () => undefined;
    for (const key of scene.bucket.files.keys()) if (isLost(key)) scene.bucket.files.delete(key);
    if (isLost("")) scene.bucket.uploads.clear();
    await scene.settle();
    expect(await stored(job)).toMatchObject({ state: "completed", total: 6 });
    expect(gunzipSync(fileOf(job) ?? Buffer.alloc(0)).toString()).toBe(await streamed(company));
    expect(scene.bucket.uploads.size).toBe(0);
  }
});

test("a rep's file holds what the rep sees; who sees less by the time of the work gets none", async () => {
  const company = await newFilled(6);
  const rep: Caller = { companyId: company.caller.companyId, userId: company.repId, role: "sales", permissions: [] };
  const own = await begun(rep);
  const viewer = { ...rep, permissions: ["canViewAllProspects" as const] };
  const all = await begun(viewer);
  await scene.run(scene.sound(), own);
  await scene.run(scene.sound(), all);
  expect(gunzipSync(fileOf(own) ?? Buffer.alloc(0)).toString()).toBe(await streamed({ caller: rep }));
  expect((await stored(own)).total).toBe(3);
  // The directory does not know of the permission.
  expect(await stored(all)).toMatchObject({ state: "failed" });
  expect(fileOf(all)).toBeUndefined();
  const late = await begun(rep);
  await updateUser(scene.sound(), company.caller, company.repId, { isActive: false });
  await scene.run(scene.sound(), late);
  expect(await stored(late)).toMatchObject({ state: "failed" });
});

test("run after run that has time for one part alone, each by a message of the one before: the whole file", async () => {
  const company = await newCompany(scene.sound());
  const { companyId } = company.caller;
  const rows = Array.from({ length: 1_700 }, (_, i) => `n${i},39.${i},-104.${i}`);
  await importFile(scene.sound(), company.caller, Buffer.from(`name,lat,lng\n${rows.join("\n")}\n`));
  const job = await begun(company.caller);
  let runs = 0;
  for (scene.queue.push(job); scene.queue.length > 0; runs++) {
    scene.queue.length = 0;
    await runExport(scene.sound(), { companyId, id: job.id }, () => 1_000, 0);
  }
  expect(runs).toBeGreaterThan(3);
  expect((await stored(job)).parts?.tags).toHaveLength(5);
  await expectWhole(company, job);
});
