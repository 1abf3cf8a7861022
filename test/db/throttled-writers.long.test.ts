/**
 * Tests writers on a table that throttles. They must not lose a row, must not write a row twice, and may give up only at their deadline.
 * The import of a million rows has 4 partitions, as many as a new on-demand table has. In AWS, each accepts 1 000 write units per second.
 * In the test, it accepts 250, because one machine runs both the writer and the table. The writer reaches about 2 000 rows per second.
 */
import { expect, test } from "vitest";
import { isTombstone } from "#shared/company-index/record.ts";
import { contextOn } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import { withDeadline } from "#shared/deadline.ts";
import { TableBusy } from "#shared/errors.ts";
import { findImport, summaryOf } from "#shared/jobs/import/requests.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { startThrottledDynamoDb, tableOn } from "../harness/throttled-dynamodb.ts";
import { newCompany } from "../harness/warm-function.ts";
import { faultyJobs } from "../jobs/faulty-jobs.ts";

const db = faultyDynamoDb();

/** Milliseconds (15 minutes) after which Lambda stops one execution of the import job. */
const RUN_MS = 900_000;

/**
 * Imports `rows` rows while each partition accepts `rate` write units per second. Returns how many executions of the job the import needed,
 * and how many writes the table refused.
 */
async function importThrottled(rows: number, partitions: number, rate: number) {
  const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
  const scene = faultyJobs(db, now);
  const company = await newCompany(scene.sound());
  const lines = Array.from({ length: rows }, (_, i) => `n${i},39.7,${(-104 - i / 20_000).toFixed(5)}`);
  const job = await scene.uploaded(company.caller, Buffer.from(`name,lat,lng\n${lines.join("\n")}\n`));
  const throttled = await startThrottledDynamoDb(db.directEndpoint, partitions, rate);
  let runs = 0;
  try {
    const context = { ...scene.sound(), ...contextOn(tableOn(throttled), { now: () => now.ms }) };
    for (let state = "queued"; state !== "completed"; ) {
      const end = Date.now() + RUN_MS;
      const remainingMs = (): number => end - Date.now();
      await withDeadline(remainingMs, () => scene.run(context, job, remainingMs));
      runs++;
      expect(runs).toBeLessThan(20);
      ({ state } = summaryOf(await findImport(scene.sound(), company.caller.companyId, job.id)));
    }
  } finally {
    throttled.stop();
  }
  const { companyId } = company.caller;
  const summary = summaryOf(await findImport(scene.sound(), companyId, job.id));
  expect(summary).toMatchObject({ state: "completed", imported: rows });
  await checkRows(scene.sound().table, companyId, rows);
  return { runs, refusedWrites: throttled.counts.refusedWrites };
}

/** Maximum number of rows for a test that calls `checkIndex`, which keeps all rows in memory: a million rows would need 4 GB. */
const ROWS_IN_MEMORY = 20_000;

/** Expects that each imported row exists once: all rows have different names, so there must be as many different texts as rows. */
async function checkRows(table: Table, companyId: number, rows: number): Promise<void> {
  const records = indexRecords(table);
  const texts = new Set<string>();
  let count = 0;
  for await (const { prospects } of records.readAll(companyId)) {
    for (const prospect of prospects) {
      if (isTombstone(prospect)) continue;
      count++;
      texts.add(prospect.text);
    }
  }
  expect([count, texts.size]).toEqual([rows, rows]);
  if (rows <= ROWS_IN_MEMORY) expect(await checkIndex(table, companyId)).toEqual([]);
  const verdict = await verifyIndex(table, records, companyId, { pauseMs: 0 });
  expect(verdict).toMatchObject({ prospects: rows, faults: [], unexamined: 0 });
}

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
    const { runs, refusedWrites } = await importThrottled(rows, partitions, rate);
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
