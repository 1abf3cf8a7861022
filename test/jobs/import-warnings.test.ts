/** Tests what an import says about values that it leaves out, and about tags beyond the maximum of the company. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { addTags, jobNames } from "#shared/jobs/import/check.ts";
import { findImport } from "#shared/jobs/import/requests.ts";
import * as limits from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { killPointsOf } from "../harness/kills.ts";
import { createProspect, importFile } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { jobTests } from "./faulty-jobs.ts";

const { harness } = jobTests();
const options = { matchBy: "emailAddress", onMatch: "update" } as const;
const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

/** The import ignores three values of addresses: two of the first row and one of the second row. Only the third prospect has an address. */
const file = Buffer.from(
  "email,name,Town,Postal Code\na@x.test,Ann,Aurora,80010\nb@x.test,Ben,,80011\nc@x.test,Cid,Aurora,80012\n",
);

async function stage() {
  const context = harness.sound();
  const caller = await newOwner(context);
  for (const name of ["a", "b"]) await createProspect(context, caller, { name, emailAddress: `${name}@x.test` });
  await createProspect(context, caller, { name: "c", emailAddress: "c@x.test", address: home });
  return { context, caller };
}

test("parts of an address that a prospect without one cannot take are counted as warnings by both imports", async () => {
  const { context, caller } = await stage();
  const result = { updated: 3, skipped: 0, warnings: 3 };
  expect(await importFile(context, caller, file, options)).toMatchObject(result);
  const job = await harness.uploaded(caller, file, options);
  await harness.run(context, job);
  expect(await findImport(context, caller.companyId, job.id)).toMatchObject({ state: "completed", ...result });
});

test("a job that is killed and continues counts each warning once", async () => {
  const { caller } = await stage();
  const counted = await harness.uploaded(caller, file, options);
  const calls = await harness.killed(["before", "table"], () => harness.run(harness.faulty(), counted));
  for (const last of killPointsOf(calls, 0)) {
    const job = await harness.uploaded((await stage()).caller, file, options);
    await harness.killed(["before", "table"], () => harness.run(harness.faulty(), job), last);
    harness.queue.push(job);
    await harness.settle();
    const found = await findImport(harness.sound(), job.companyId, job.id);
    expect(found, `killed at call ${last}`).toMatchObject({ state: "completed", updated: 3, warnings: 3 });
  }
});

/** Gives the company one tag fewer than the maximum. */
async function fillTags({ table }: ApiContext, { companyId }: Caller): Promise<void> {
  const dates = { createdAt: iso(0), updatedAt: iso(0) };
  await table.batchPut(
    Array.from({ length: limits.tagsPerCompany - 1 }, (_, i) => {
      const id = 1_000_000_000 + i;
      return { ...keys.tag(companyId, id), type: "tag", id, value: `t${i}`, color: "#000000", version: 1, ...dates };
    }),
  );
}

test("the error of a row with one tag too many names this tag", async () => {
  const { context, caller } = await stage();
  await fillTags(context, caller);
  const rows = Buffer.from("name,lat,lng,tags\nAnn,1,2,t1;hail;roof\nBen,1,2,hail\nCid,1,2,t2;wind\n");
  const message = (tag: string) =>
    `tags: the company can have at most ${limits.tagsPerCompany} tags, and '${tag}' would be one more`;
  expect(await importFile(context, caller, rows, { dryRun: true })).toMatchObject({
    imported: 1,
    errors: [
      { row: 2, message: message("roof") },
      { row: 4, message: message("wind") },
    ],
  });
});

test("other requests have created so many tags since the check of the file that the job must fail with the reason", async () => {
  const { context, caller } = await stage();
  const { companyId } = caller;
  const job = { companyId, id: 1 };
  const names = await jobNames(context, job);
  await fillTags(context, caller);
  await expect(addTags(context, job, names, ["a", "b"])).rejects.toThrow(
    new BadFile(`A company may have at most ${limits.tagsPerCompany} tags.`),
  );
  await expect(addTags(context, job, names, ["a", "b"])).rejects.toBeInstanceOf(BadFile);
  expect((await addTags(context, job, names, ["a"])).tagIds.has("a")).toBe(true);
  // The company has no room for another tag, but the tag `a` exists, so an import may use it.
  expect((await addTags(context, job, names, ["a"])).tagIds.has("a")).toBe(true);
  expect((await loadDictionary(context.table, companyId)).tags.size).toBe(limits.tagsPerCompany);
});
