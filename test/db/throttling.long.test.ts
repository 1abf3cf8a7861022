/**
 * Tests the import of a million rows into a table with 4 partitions, as many as a new on-demand table has. In AWS, each partition accepts
 * 1 000 write units per second. In the test, it accepts only 250, because one machine runs both the writer and the table. The writer
 * reaches about 2 000 rows per second and would never be throttled at the real limit.
 */
import { expect, test } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { importThrottled } from "./throttled-import.ts";

const db = faultyDynamoDb();

const HOUR_MS = 3_600_000;

test.each([
  [1_000_000, 4, 250],
  [20_000, 2, 50],
])(
  "an import of %i rows completes on %i partitions of %i write units a second",
  { timeout: HOUR_MS },
  async (rows, partitions, rate) => {
    const { runs, refusedWrites } = await importThrottled(db, { rows, partitions, rate });
    console.log(`${rows} rows: ${runs} runs, ${refusedWrites} writes refused`);
    expect(refusedWrites).toBeGreaterThan(0);
  },
);
