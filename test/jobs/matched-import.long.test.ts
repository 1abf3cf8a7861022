/** Tests killed imports that update prospects: each prospect is changed once, each new row exists once, and the counts are correct. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { unpacked } from "#shared/db/packed.ts";
import { findImport, summaryOf } from "#shared/jobs/import/requests.ts";
import { RowFault } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { csvText } from "#shared/prospects/csv/write.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { checkIndex, readAllProspects } from "../harness/index-oracle.ts";
import { killPointsOf } from "../harness/kills.ts";
import { deleteProspect, importFile, updateProspect, updateUser } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { jobDeaths, jobTests } from "./faulty-jobs.ts";

const { harness } = jobTests("test");

const UPDATED = 12;
const CREATED = 5;
const FAULTY = 3;
const ROWS = UPDATED + CREATED + FAULTY;
const update = { matchBy: "sourceId", onMatch: "update" } as const;

const header = ["sourceId", "name", "lat", "lng", "address1", "city", "state", "zip", "status", "tags", "notes"];
const address = ["1 Main St", "Denver", "CO", "80202"];
const seed = Buffer.from(
  csvText([
    header,
    ...Array.from({ length: UPDATED }, (_, i) => [`S${i}`, `old${i}`, "1", "2", ...address, "New", "a", ""]),
  ]),
);
const file = Buffer.from(
  csvText([
    header,
    ...Array.from({ length: UPDATED + CREATED }, (_, i) => {
      return [`S${i}`, `n${i}`, "3", "4", "2 Elm St", ...address.slice(1), "Sold", "b;c", `note ${i}`];
    }),
    ...Array.from({ length: FAULTY }, () => ["S0", "repeated", "1", "2", "", "", "", "", "", "", ""]),
  ]),
);

async function seeded() {
  const company = await newCompany(harness.sound());
  await importFile(harness.sound(), company.caller, seed);
  const query = ListQuery.parse({ pageSize: "500" });
  const { items } = await listProspects(harness.sound(), company.caller, query);
  return { ...company, ids: items.map(({ id }) => id) };
}

const importOf = ({ companyId, id }: JobMessage) => findImport(harness.sound(), companyId, id);

/** Expects that each row of the file has taken effect once. A user has renamed the prospect `renamed` after the import. */
async function expectOnce(
  { caller, ids }: { caller: Caller; ids: readonly number[] },
  renamed?: number,
): Promise<void> {
  const context = harness.sound();
  for (const [i, id] of ids.entries()) {
    const { name, statusHistory, notes, tags, address: shown } = await readProspect(context, caller, id);
    expect(name).toBe(id === renamed ? "by a user" : `n${i}`);
    expect(statusHistory.map(({ status }) => status?.value)).toEqual(["Sold", "New"]);
    expect(notes.map(({ body }) => body)).toEqual([`note ${i}`]);
    expect(tags.map(({ tag }) => tag.value)).toEqual(["b", "c"]);
    expect(shown?.address1).toBe("2 Elm St");
  }
  const { prospects, notes } = await readAllProspects(context.table, caller.companyId);
  expect(prospects).toHaveLength(UPDATED + CREATED);
  expect(notes).toHaveLength(UPDATED + CREATED);
  expect(await checkIndex(context.table, caller.companyId)).toEqual([]);
}

async function expectCounts(job: JobMessage, label: string): Promise<void> {
  const stored = await importOf(job);
  const counts = { written: UPDATED + CREATED, imported: CREATED, updated: UPDATED, skipped: FAULTY };
  expect(summaryOf(stored), label).toMatchObject({ state: "completed", processed: ROWS, ...counts });
  const errors = unpacked(z.array(RowFault), stored.errors);
  expect(errors.map(({ row }) => row)).toEqual(Array.from({ length: FAULTY }, (_, i) => UPDATED + CREATED + 2 + i));
}

test.each(jobDeaths.filter(([, service]) => service === "table"))(
  "killed %s any call of the table takes effect, and with a user's change before the next run",
  { tags: "sized" },
  async (...death) => {
    const counting = await seeded();
    const first = await harness.uploaded(counting.caller, file, update);
    const all = await harness.killed(death, async () => expect(await harness.run(harness.faulty(), first)).toBe(true));
    await expectCounts(first, "without a fault");
    await expectOnce(counting);
    expect(all).toBeGreaterThan(50);
    for (const last of killPointsOf(all, death[0] === "before" ? 0 : 1)) {
      const company = await seeded();
      const job = await harness.uploaded(company.caller, file, update);
      await harness.killed(death, () => harness.run(harness.faulty(), job), last);
      const { caller, ids } = company;
      const shown = await Promise.all(ids.map((id) => readProspect(harness.sound(), caller, id)));
      const changed = shown.find(({ name }) => name?.startsWith("n"))?.id;
      if (changed !== undefined) await updateProspect(harness.sound(), caller, changed, { name: "by a user" });
      await harness.settle();
      await expectCounts(job, `killed at call ${last}`);
      await expectOnce(company, changed);
    }
  },
);

test("after a killed request is repeated, each row is imported once", { tags: "sized" }, async () => {
  const death = ["before", "table"] as const;
  const request = ({ caller }: { caller: Caller }) => importFile(harness.faulty(), caller, file, update);
  const counting = await seeded();
  const all = await harness.killed(death, () => request(counting));
  for (const last of killPointsOf(all, 3)) {
    const company = await seeded();
    await harness.killed(death, () => request(company).catch(() => undefined), last);
    const created = (await readAllProspects(harness.sound().table, company.caller.companyId)).prospects.length;
    const result = await importFile(harness.sound(), company.caller, file, update);
    // The killed request may have been complete. Then its rows exist, and the repeated request must not create them a second time.
    if (created === UPDATED) expect(result).toMatchObject({ imported: CREATED, updated: UPDATED, skipped: FAULTY });
    expect(result.imported + result.updated + result.skipped).toBe(ROWS);
    await expectOnce(company);
  }
});

test("rows whose prospects are deleted or changed after the look-up are skipped, and the errors are in the file's order", async () => {
  const company = await seeded();
  const { caller, ids } = company;
  const job = await harness.uploaded(caller, file, update);
  // One second is enough to check the file, but not to write rows. The next execution must notice the changes below.
  const sound = harness.sound();
  await harness.run(sound, job, () => 1_000);
  expect((await importOf(job)).progress.step).toBe("write");
  const [deleted = 0, changed = 0] = ids;
  await deleteProspect(sound, caller, deleted);
  await updateProspect(sound, caller, changed, { sourceId: "another" });
  await harness.settle();
  const stored = await importOf(job);
  const counts = { imported: CREATED, updated: UPDATED - 2, skipped: FAULTY + 2, processed: ROWS };
  expect(summaryOf(stored)).toMatchObject(counts);
  const gone = "the matching prospect was changed or deleted during the import";
  expect(unpacked(z.array(RowFault), stored.errors).slice(0, 3)).toEqual([
    { row: 2, message: gone },
    { row: 3, message: gone },
    { row: 19, message: "sourceId: row 2 has the same value" },
  ]);
  expect((await readProspect(sound, caller, changed)).name).toBe("old1");
  expect([...harness.bucket.files.keys()]).not.toContain(importKeys.matches(job));
});

test("a user who lost the right to see all prospects since the request changes none of them", async () => {
  const company = await seeded();
  const { companyId } = company.caller;
  const permissions = ["canManageProspects", "canViewAllProspects"] as const;
  const rep: Caller = { companyId, userId: company.repId, role: "sales", permissions: [...permissions] };
  const job = await harness.uploaded(rep, file, update);
  await updateUser(harness.sound(), company.caller, company.repId, { permissions: ["canManageProspects"] });
  await harness.settle();
  expect(summaryOf(await importOf(job))).toMatchObject({ state: "completed", imported: UPDATED + CREATED, updated: 0 });
  for (const id of company.ids) {
    expect((await readProspect(harness.sound(), company.caller, id)).name).toMatch(/^old/);
  }
});
