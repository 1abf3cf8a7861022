/** Imports rows into a table whose partitions throttle writes, and checks that every row is written exactly once. */
import { expect } from "vitest";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { isTombstone } from "#shared/company-index/record.ts";
import { contextOn } from "#shared/context.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { withDeadline } from "#shared/deadline.ts";
import { findImport, summaryOf } from "#shared/jobs/import/requests.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { type FaultyDynamoDb, patient, TABLE } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { startThrottledDynamoDb, type ThrottledDynamoDb } from "../harness/throttled-dynamodb.ts";
import { newCompany } from "../harness/warm-function.ts";
import { faultyJobs } from "../jobs/faulty-jobs.ts";

/** Milliseconds (15 minutes) after which Lambda stops one execution of the import job. */
const RUN_MS = 900_000;

const local = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };

/** Opens the table behind the throttling proxy. `attempts` is the SDK's maximum number of attempts for one call. */
export const tableOn = ({ endpoint }: ThrottledDynamoDb, attempts = 5): Table =>
  openTable(TABLE, dynamoClient({ ...local, ...patient, endpoint, attempts }));

export interface Throttled {
  readonly rows: number;
  readonly partitions: number;
  /** Write units that each partition accepts per second. */
  readonly rate: number;
}

/** Returns how many executions of the job the import needed, and how many writes the table refused. */
export async function importThrottled(
  db: FaultyDynamoDb,
  { rows, partitions, rate }: Throttled,
): Promise<{ runs: number; refusedWrites: number }> {
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
  expect(summaryOf(await findImport(scene.sound(), companyId, job.id))).toMatchObject({
    state: "completed",
    imported: rows,
  });
  await checkRows(scene.sound().table, companyId, rows);
  return { runs, refusedWrites: throttled.counts.refusedWrites };
}

/**
 * Up to this number of rows, the test also calls `checkIndex`. This function keeps all rows in memory, so a million rows would need 4 GB.
 */
const ROWS_IN_MEMORY = 20_000;

/**
 * Checks that the table and the index contain each row of the file exactly once. All rows have different names, so different texts prove
 * different rows.
 */
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
