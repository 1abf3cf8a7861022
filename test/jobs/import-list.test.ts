/** Tests the list of imports: its order, and who began each import. */
import { expect, test } from "vitest";
import { listImports } from "#shared/jobs/import/requests.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { importFile } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { faultyJobs } from "./faulty-jobs.ts";

const db = faultyDynamoDb();

test("the later import is first, also if it has the lower id, and each import says who began it", async () => {
  const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
  const harness = faultyJobs(db, now);
  // Each function reserves a block of ids, so the second import of the first function has a lower id than that of the second function.
  const [first, second] = [harness.sound(), harness.sound()];
  const { caller, repId } = await newCompany(first);
  const rep = { ...caller, userId: repId };
  const begun: number[] = [];
  for (const [context, user] of [
    [first, caller],
    [second, rep],
    [first, caller],
  ] as const) {
    now.ms += 60_000;
    begun.push((await importFile(context, user, Buffer.from("name,lat,lng\nAnn,39.7,-105\n"))).id ?? 0);
  }
  const [oldest = 0, middle = 0, newest = 0] = begun;
  expect(newest).toBeLessThan(middle);
  const { items } = await listImports(first, caller, { limit: 20 });
  expect(items.map(({ id, createdByUserId }) => [id, createdByUserId])).toEqual([
    [newest, caller.userId],
    [middle, repId],
    [oldest, caller.userId],
  ]);
});
