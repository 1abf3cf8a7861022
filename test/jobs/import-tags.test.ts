/** Tests an import job that fails because its new tags would exceed the maximum number of tags of the company. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { addTags, jobNames } from "#shared/jobs/import/check.ts";
import * as limits from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newOwner } from "../harness/warm-function.ts";
import { faultyJobs } from "./faulty-jobs.ts";

const db = faultyDynamoDb();

test("other requests have created so many tags since the check of the file that the job must fail with the reason", async () => {
  const context = faultyJobs(db, { ms: Date.parse("2030-01-01T00:00:00.000Z") }).sound();
  const { companyId } = await newOwner(context);
  const job = { companyId, id: 1 };
  const names = await jobNames(context, job);
  const dates = { createdAt: iso(0), updatedAt: iso(0) };
  const others = Array.from({ length: limits.tagsPerCompany - 1 }, (_, i) => {
    const id = 1_000_000_000 + i;
    return { ...keys.tag(companyId, id), type: "tag", id, value: `t${i}`, color: "#000000", version: 1, ...dates };
  });
  await context.table.batchPut(others);
  await expect(addTags(context, job, names, ["a", "b"])).rejects.toThrow(
    new BadFile(`A company may have at most ${limits.tagsPerCompany} tags.`),
  );
  await expect(addTags(context, job, names, ["a", "b"])).rejects.toBeInstanceOf(BadFile);
  expect((await addTags(context, job, names, ["a"])).tagIds.has("a")).toBe(true);
  expect((await loadDictionary(context.table, companyId)).tags.size).toBe(limits.tagsPerCompany);
});
