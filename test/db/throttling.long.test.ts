/** A million rows into a fresh on-demand table: 4 partitions of 1 000 write units a second refuse most of what a fast writer sends. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { importThrottled } from "./throttled-import.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

const HOUR_MS = 3_600_000;

test.each([
  [1_000_000, 4, 1_000],
  [50_000, 4, 1_000],
  [50_000, 2, 500],
])(
  "an import of %i rows completes on %i partitions of %i write units a second",
  { timeout: HOUR_MS },
  async (rows, partitions, rate) => {
    const { runs, refusedCalls } = await importThrottled(db, { rows, partitions, rate });
    console.log(`${rows} rows: ${runs} runs, ${refusedCalls} calls refused`);
    expect(refusedCalls).toBeGreaterThan(0);
  },
);
