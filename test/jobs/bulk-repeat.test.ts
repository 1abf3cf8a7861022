/** Tests what a bulk job costs that is killed after it has written a whole chunk, and is then repeated. */
import { expect, test } from "vitest";
import { mapConcurrently } from "#shared/all-ended.ts";
import { metered } from "#shared/db/meter.ts";
import { createBulk } from "#shared/jobs/bulk/create.ts";
import { CHUNK } from "#shared/jobs/bulk/members.ts";
import { createProspect } from "#shared/prospects/write.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
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

  // The results of the chunk cannot be stored, so the run ends after it has written all its rows.
  const calls = harness.bucket.calls;
  harness.bucket.plan = (call) => (call === calls + 2 ? "before" : undefined);
  const first = await metered(() => harness.run(context, job));
  expect([first.result, (await storedJob(harness, job)).done]).toEqual([false, 0]);
  const second = await metered(() => harness.run(harness.sound(), job));
  expect(second.result).toBe(true);
  expect(await storedJob(harness, job)).toMatchObject({ state: "completed", changed: CHUNK });
  console.info(JSON.stringify({ first: first.usage, second: second.usage }));
  // The rows are read in eight groups. Each group also reads the version of the names, and the rest belongs to the row of the job.
  expect(second.usage.requests).toBeLessThan(8 * 2 + 20);
  expect(second.usage.readUnits).toBeLessThan(CHUNK + 8 + 20);
  expect(second.usage.writeUnits).toBeLessThan(30);
});
