/** Tests the cost of a bulk job that is killed after it has written a whole chunk, and is then executed again. */
import { expect, test } from "vitest";
import { mapConcurrently } from "#shared/all-ended.ts";
import { metered } from "#shared/db/meter.ts";
import { CHUNK } from "#shared/jobs/bulk/files.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createBulk, createProspect } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { storedJob } from "./bulk-stage.ts";
import { faultyJobs } from "./faulty-jobs.ts";

const db = faultyDynamoDb();
const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };

test("a run that finds a chunk already written reads each row once, in few calls, and writes no row again", async () => {
  const harness = faultyJobs(db, now);
  const context = harness.sound();
  const { caller } = await newCompany(context);
  const { companyId } = caller;
  const ids = await mapConcurrently(
    [...Array(CHUNK).keys()],
    8,
    async () => (await createProspect(context, caller, {})).id,
  );
  const [currentStatusId] = (await freshDictionary(context, companyId)).statuses.keys();
  const created = await createBulk(context, context, caller, { ids, action: { set: { currentStatusId } } });
  if (!("id" in created)) throw new Error("a dry run is no job");
  const job = { kind: "bulk", companyId, id: created.id } as const;

  // The second call to the bucket, which stores the results of the chunk, fails. The execution therefore ends after it has written all rows
  // of the chunk.
  const calls = harness.bucket.calls;
  harness.bucket.plan = (call) => (call === calls + 2 ? "before" : undefined);
  const first = await metered(() => harness.run(context, job));
  expect([first.result, (await storedJob(harness, job)).done]).toEqual([false, 0]);
  const second = await metered(() => harness.run(harness.sound(), job));
  expect(second.result).toBe(true);
  expect(await storedJob(harness, job)).toMatchObject({ state: "completed", changed: CHUNK });
  console.info(JSON.stringify({ first: first.usage, second: second.usage }));
  // The second execution reads the rows in eight groups, with two requests each: one for the rows, and one for the version of the company's
  // dictionary. The other 20 requests are for the row of the job and its results.
  expect(second.usage.requests).toBeLessThan(8 * 2 + 20);
  expect(second.usage.readUnits).toBeLessThan(CHUNK + 8 + 20);
  expect(second.usage.writeUnits).toBeLessThan(30);
});
