/** Writers on a table that throttles: they go as fast as it takes their rows, lose none, write none twice, and give up only late. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { contextOn } from "#shared/context.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { withDeadline } from "#shared/deadline.ts";
import { TableBusy } from "#shared/errors.ts";
import { findImport, summaryOf } from "#shared/jobs/import/read.ts";
import { checkIndex } from "#shared/prospects/index/index-check.ts";
import { readAllProspects } from "#shared/prospects/index/plain-reading.ts";
import { type FaultyDynamoDb, patient, startFaultyDynamoDb, TABLE } from "../harness/faulty-dynamodb.ts";
import { startThrottledDynamoDb, type ThrottledDynamoDb } from "../harness/throttled-dynamodb.ts";
import { newCompany } from "../harness/warm-function.ts";
import { jobScene } from "../jobs/job-scene.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

const local = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };
const tableOn = ({ endpoint }: ThrottledDynamoDb): Table =>
  openTable(TABLE, dynamoClient({ ...local, ...patient, endpoint, attempts: 5 }));

test.each([
  [1_200, 4, 100],
  [300, 4, 20],
  [120, 1, 20],
])("an import of %i rows completes on %i partitions of %i write units a second", async (rows, partitions, rate) => {
  const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
  const scene = jobScene(db, now);
  const company = await newCompany(scene.sound());
  const lines = Array.from({ length: rows }, (_, i) => `n${i},39.7,-104.${i}`);
  const job = await scene.uploaded(company.caller, Buffer.from(`name,lat,lng\n${lines.join("\n")}\n`));
  const throttled = await startThrottledDynamoDb(db.directEndpoint, partitions, rate);
  try {
    const context = { ...scene.sound(), ...contextOn(tableOn(throttled), { now: () => now.ms }) };
    // As the queue's consumer runs it.
    expect(
      await withDeadline(
        () => 900_000,
        () => scene.run(context, job),
      ),
    ).toBe(true);
  } finally {
    throttled.stop();
  }
  expect(throttled.counts.refusedCalls).toBeGreaterThan(0);
  const { companyId } = company.caller;
  expect(summaryOf(await findImport(scene.sound(), companyId, job.id))).toMatchObject({
    state: "completed",
    imported: rows,
  });
  const { prospects } = await readAllProspects(scene.sound().table, companyId);
  expect(prospects.map(({ name }) => name).toSorted()).toEqual(
    Array.from({ length: rows }, (_, i) => `n${i}`).toSorted(),
  );
  expect(await checkIndex(scene.sound().table, companyId)).toEqual([]);
});

test("a batch whose table takes nothing any more ends as busy when its time is over", async () => {
  const throttled = await startThrottledDynamoDb(db.directEndpoint, 1, 0);
  try {
    const end = Date.now() + 4_000;
    const writing = withDeadline(
      () => end - Date.now(),
      () => tableOn(throttled).batchPut([{ pk: "throttled", sk: "1" }]),
    );
    await expect(writing).rejects.toBeInstanceOf(TableBusy);
  } finally {
    throttled.stop();
  }
});
