/** Tests concurrent writes of the head row of the company index and of a request for a flush: a late write replaces no newer state. */
import { expect, test } from "vitest";
import { moveHead, readHead } from "#shared/company-index/manifest.ts";
import {
  releaseCompactionLock,
  renewCompactionLock,
  takeCompactionLock,
} from "#shared/company-index/repair/rebuild.ts";
import { flushStream, sweepFlushRequests } from "#shared/company-index/write/flush-stream.ts";
import * as keys from "#shared/db/keys.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { IndexedCompany } from "./indexed-company.ts";

const db = faultyDynamoDb();
const START = 1_760_000_000_000;
let companies = 7_000;

const headOf = async (companyId: number) => readHead(await db.direct.get(keys.indexHead(companyId)));

test("of two moves of the head from the same version, the second one changes nothing and gets the current head", async () => {
  const companyId = companies++;
  const from = readHead(undefined);
  const move = (run: string) => moveHead(db.direct, companyId, from, { manifest: [run], version: 1 });
  expect(await move("first")).toBeUndefined();
  expect(await move("second")).toMatchObject({ manifest: ["first"], version: 1 });
  expect(await headOf(companyId)).toMatchObject({ manifest: ["first"] });
});

test("a rebuild that has lost the lock neither renews nor releases it", async () => {
  const companyId = companies++;
  const context = (nowMs: number) => ({ table: db.direct, clock: { now: () => nowMs } });
  await takeCompactionLock(context(START), companyId, readHead(undefined), "lost");
  await takeCompactionLock(context(START + 1), companyId, await headOf(companyId), "own");
  const head = await headOf(companyId);
  await expect(renewCompactionLock(context(START + 2), companyId, "lost")).rejects.toThrow();
  await releaseCompactionLock(context(START + 2), companyId, "lost");
  expect(await headOf(companyId)).toEqual(head);
});

/** Creates unflushed entries. `handle` passes a stream record of these entries to a newly started function. */
async function unflushed() {
  const company = new IndexedCompany(companies++, db.direct);
  await company.createMany(3);
  const companyId = company.id;
  const handle = (nowMs: number) =>
    flushStream(() => ({ table: db.direct, clock: { now: () => nowMs } }))({
      Records: [{ dynamodb: { SequenceNumber: "1", Keys: { pk: { S: `C#${companyId}#X` }, sk: { S: "D#1" } } } }],
    });
  return { handle, request: () => db.direct.get(keys.flushRequest(companyId)) };
}

test("a later request for a flush does not postpone the existing request", async () => {
  const { handle, request } = await unflushed();
  await handle(START);
  const first = await request();
  expect(await handle(START + 1_000)).toEqual({ batchItemFailures: [] });
  expect(await request()).toEqual(first);
});

test("a sweep releases only the request that it has read, and not a later request in the same row", async () => {
  const { handle, request } = await unflushed();
  await handle(START);
  const sweep = (batch = db.direct) => sweepFlushRequests({ table: batch, clock: { now: () => START + 3_600_000 } });
  const slow = {
    ...db.direct,
    write: async (write: Parameters<typeof db.direct.write>[0]) => {
      await sweep();
      await handle(START + 3_600_000);
      return db.direct.write(write);
    },
  };
  await sweep(slow);
  expect(await request()).toMatchObject({ dueAt: expect.any(String) });
});
