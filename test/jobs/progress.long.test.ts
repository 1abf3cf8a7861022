/** Tests that jobs report their progress every few seconds, also between the checkpoints from which a killed job continues. */
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import type { JobContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { BucketUnavailable } from "#shared/errors.ts";
import { presentExport } from "#shared/jobs/export/requests.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { summaryOf } from "#shared/jobs/import/requests.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { beginExport, importFile } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { jobTests } from "./faulty-jobs.ts";
import { fileOf as fileWithFaults } from "./import-checks.ts";

const { now, harness } = jobTests();

/** Simulated milliseconds that writing or reading one batch takes. */
const BATCH_MS = 4_000;

const fileOf = (count: number): Buffer =>
  Buffer.from(`name,lat,lng\n${Array.from({ length: count }, (_, i) => `n${i},39.${i},-104.${i}\n`).join("")}`);

/** Wraps a context so that each slow call advances the clock. `report` receives every state of the job that is written to the table. */
function slowly(context: JobContext, report: (item: Item | undefined) => void): JobContext {
  const { table, objects } = context;
  return {
    ...context,
    table: {
      ...table,
      batchPut: async (items) => {
        await table.batchPut(items);
        now.ms += BATCH_MS;
      },
      query: async function* (spec) {
        yield* table.query(spec);
        now.ms += BATCH_MS;
      },
      write: async (entry) => {
        const item = await table.write(entry);
        report(item);
        return item;
      },
    },
    objects: {
      ...objects,
      read: async function* (key, etag) {
        for await (const chunk of objects.read(key, etag)) {
          yield chunk;
          now.ms += BATCH_MS;
        }
      },
    },
  };
}

test("an import reports checked batches and every written batch", async () => {
  const { job } = await harness.newUpload(fileOf(7_000));
  const [checked, done]: [number[], number[]] = [[], []];
  const context = slowly(harness.sound(), (item) => {
    if (item?.type !== "import") return;
    const { processed, written } = summaryOf(StoredImport.parse(item));
    checked.push(processed);
    done.push(written);
  });
  expect(await harness.run(context, job)).toBe(true);
  // While the import checks the rows, it does not report every batch, because Node's streams read an unspecified number of bytes ahead. The
  // test therefore expects only a minimum of different counts.
  expect(new Set(checked).size).toBeGreaterThan(3);
  expect(new Set(done)).toEqual(new Set([0, 2_048, 4_096, 6_144, 7_000]));
  for (const counts of [checked, done]) expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  // The import writes its row at the beginning, after each batch of rows, at the beginning of each step (check, write, publish) and at the
  // end. For 7 000 rows, these are fewer than 18 writes. More writes would waste write units.
  expect(done.length).toBeLessThan(18);
});

test("an export reports the rows that it has read before a part of the file is full", async () => {
  const { caller } = await newCompany(harness.sound());
  await importFile(harness.sound(), caller, fileOf(1_700));
  const { id } = await beginExport(harness.sound(), harness.sound().jobs, caller, {});
  const seen: number[] = [];
  const context = slowly(harness.sound(), (item) => {
    if (item?.type === "export") seen.push(presentExport(StoredExport.parse(item), null).processed);
  });
  expect(await harness.run(context, { kind: "export", companyId: caller.companyId, id })).toBe(true);
  expect(new Set(seen)).toEqual(new Set([0, 500, 1_000, 1_500, 1_700]));
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  const stored = StoredExport.parse(await context.table.get(keys.export(caller.companyId, id)));
  expect(stored).toMatchObject({ state: "completed", processed: 1_700 });
});

test("a failing execution waits for its pending writes before it ends", async () => {
  const { job } = await harness.newUpload(fileOf(7_000));
  const { table, objects, ...context } = harness.sound();
  let pending = 0;
  let batches = 0;
  const batchPut: JobContext["table"]["batchPut"] = async (items) => {
    batches++;
    pending++;
    await table.batchPut(items);
    await setTimeout(100);
    pending--;
  };
  /** The third read of the file is the one in which the job writes its rows. It fails after the first batch of rows has begun. */
  let readings = 0;
  const read: JobContext["objects"]["read"] = async function* (key, etag) {
    const isThird = ++readings === 3;
    for await (const chunk of objects.read(key, etag)) {
      yield chunk;
      if (isThird && batches > 0) throw new BucketUnavailable("as planned");
    }
  };
  const failing = { ...context, table: { ...table, batchPut }, objects: { ...objects, read } };
  expect(await harness.run(failing, job)).toBe(false);
  expect(batches).toBeGreaterThan(0);
  expect(pending).toBe(0);
});

test("after an execution dies with reported progress, the next one counts each row once", async () => {
  const { job } = await harness.newUpload(fileWithFaults(5_000, 150), { dryRun: true });
  const context = harness.sound();
  // The job reads the file twice: to find its encoding, and to check its rows. The second read fails.
  let readings = 0;
  const breaking = async function* (key: string, etag: string): AsyncGenerator<Uint8Array> {
    const isSecond = ++readings === 2;
    let pieces = 0;
    for await (const piece of harness.bucket.read(key, etag)) {
      now.ms += 21_000;
      if (++pieces === 5 && isSecond) throw new BucketUnavailable("as planned");
      yield piece;
    }
  };
  expect(await harness.run({ ...context, objects: { ...harness.bucket, read: breaking } }, job)).toBe(false);
  expect((await harness.summary(job)).processed).toBeGreaterThan(2_000);
  await harness.settle();
  const counts = { processed: 5_150, imported: 5_000, skipped: 150 };
  expect(await harness.summary(job)).toMatchObject({ state: "completed", ...counts });
});
