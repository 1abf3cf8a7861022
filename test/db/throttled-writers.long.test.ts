/**
 * Tests writers on a table that throttles. They must not lose a row, must not write a row twice, and may give up only at their deadline.
 * The import of a million rows has 4 partitions, as many as a new on-demand table has. In AWS, each accepts 1 000 write units per second.
 * In the test, it accepts 250, because one machine runs both the writer and the table. The writer reaches about 2 000 rows per second.
 */
import { expect, test } from "vitest";
import { withDeadline } from "#shared/deadline.ts";
import { TableBusy } from "#shared/errors.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { startThrottledDynamoDb } from "../harness/throttled-dynamodb.ts";
import { importThrottled, tableOn } from "./throttled-import.ts";

const db = faultyDynamoDb();

const HOUR_MS = 3_600_000;

test.each([
  [1_000_000, 4, 250],
  [20_000, 2, 50],
  [1_200, 4, 100],
  [300, 4, 20],
  [120, 1, 20],
])(
  "an import of %i rows completes on %i partitions of %i write units a second",
  { timeout: HOUR_MS },
  async (rows, partitions, rate) => {
    const { runs, refusedWrites } = await importThrottled(db, { rows, partitions, rate });
    if (rows < 20_000) expect(runs).toBe(1);
    expect(refusedWrites).toBeGreaterThan(0);
  },
);

test("a batch fails with TableBusy at its deadline if the table throttles every write", async () => {
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
