/**
 * Tests the migration of prospects to another shape. Nothing may be lost, concurrent changes must not be overwritten, and a crash must do
 * no harm.
 */
import { marshall } from "@aws-sdk/util-dynamodb";
import { beforeEach, expect, test } from "vitest";
import type { ApiContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { readProgress, reshapeProspects } from "#shared/prospects/reshape.ts";
import { prospectItem, shapeOfProspect, storedProspect } from "#shared/prospects/stored.ts";
import { createProspect, deleteProspect, updateProspect } from "#shared/prospects/write.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { eventsOf } from "#shared/webhooks/events/row-events.ts";
import { imageOf } from "../../infra/local/stream-image.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { calledBy, Killed } from "../harness/killable.ts";
import { killPoints } from "../harness/kills.ts";
import { type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const clock = { now: () => Date.now() };
const FAST = { unitsPerSecond: 1_000_000 };
const wait = async () => undefined;

let context: ApiContext;
let company: Company;
let ids: number[];

beforeEach(async () => {
  context = warmFunction(db, clock);
  company = await newCompany(context);
  const input = (i: number) => {
    const address = { address1: `${i} Main St`, address2: null, city: "Denver", state: "CO", zip: "80202" };
    return i % 3 === 0
      ? {}
      : { name: `P${i}`, address: { ...address, formattedAddress: i % 2 === 0 ? null : `House ${i}` } };
  };
  const made = await Promise.all(
    Array.from({ length: 24 }, (_, i) => createProspect(context, company.caller, input(i))),
  );
  ids = made.map(({ id }) => id);
  await deleteProspect(context, company.caller, ids[0] ?? 0);
});

async function rows(): Promise<Item[]> {
  const found = await Promise.all(ids.map((id) => db.direct.get(keys.prospect(company.caller.companyId, id))));
  return found.map((item) => item ?? expect.fail("a row is missing"));
}

const contents = async () => (await rows()).map((row) => storedProspect(row));
const shapesOf = async () => [...new Set((await rows()).map(shapeOfProspect))];

test("rows get the other shape and their old one again; contents, versions and index stay the same", async () => {
  const { companyId } = company.caller;
  const before = await contents();
  for (const shape of [1, 2, 1] as const) {
    const reached = await reshapeProspects({ table: db.direct, clock, wait }, companyId, shape, FAST);
    expect(reached).toMatchObject({ state: "completed", target: shape, rewritten: ids.length });
    expect(await shapesOf()).toEqual([shape]);
    expect(await contents()).toEqual(before);
  }
  expect(await readProgress(db.direct, companyId)).toMatchObject({ state: "completed", target: 1 });
  expect((await verifyIndex(db.direct, indexRecords(db.direct), companyId)).faults).toEqual([]);
});

test("a row in its other shape is the row that release 0.1.0 or this release would have written", async () => {
  const [, id = 0] = ids;
  const key = keys.prospect(company.caller.companyId, id);
  for (const shape of [1, 2] as const) {
    await reshapeProspects({ table: db.direct, clock, wait }, company.caller.companyId, shape, FAST);
    const { pk, sk, writeId, ...item } = (await db.direct.get(key)) ?? {};
    expect(item).toEqual(prospectItem(storedProspect(item), shape));
  }
});

test("a change of the shape has no event", async () => {
  const before = await rows();
  await reshapeProspects({ table: db.direct, clock, wait }, company.caller.companyId, 1, FAST);
  const after = await rows();
  const throughStream = (item: Item | undefined) =>
    itemOfImage(imageOf(marshall(item, { removeUndefinedValues: true })));
  const names = () => loadDictionary(db.direct, company.caller.companyId);
  for (const [i, row] of after.entries()) {
    const change = { before: throughStream(before[i]), after: throughStream(row) };
    expect(await eventsOf.prospect(db.direct, change, names)).toEqual([]);
    expect(await eventsOf.prospect(db.direct, { before: change.after, after: change.before }, names)).toEqual([]);
  }
});

test("a concurrent change wins, and its row gets the shape in the next pass", async () => {
  const { caller } = company;
  const [, changed = 0, removed = 0] = ids;
  let isFirst = true;
  // The two concurrent changes happen after the command has read the rows and before it rewrites them.
  db.plan((operation) => {
    if (operation !== "TransactWriteItems" || !isFirst) return pass;
    isFirst = false;
    return {
      kind: "early",
      meanwhile: async () => {
        await updateProspect(context, caller, changed, { name: "Changed" });
        await deleteProspect(context, caller, removed);
      },
    };
  });
  // The command migrates to shape 1, but the functions of this deployment still write shape 2. The concurrently changed row therefore has
  // shape 2, and the command must rewrite it in another pass.
  const reached = await reshapeProspects({ table: db.table, clock, wait }, caller.companyId, 1, FAST);
  expect(reached).toMatchObject({ state: "completed", pass: 3 });
  expect(await shapesOf()).toEqual([1]);
  const found = await contents();
  expect(found[1]).toMatchObject({ name: "Changed", version: 2 });
  expect(found[2]).toMatchObject({ deletedAt: expect.any(String), version: 2 });
});

test("if functions keep writing the other shape, the command ends and says so", async () => {
  const { caller } = company;
  const [, id = 0] = ids;
  let names = 0;
  const table = calledBy(async (work, operation) => {
    const result = await work();
    if (operation === "transact" || operation === "write")
      await updateProspect(context, caller, id, { name: `N${names++}` });
    return result;
  }, db.direct);
  const reached = await reshapeProspects({ table, clock, wait }, caller.companyId, 1, FAST);
  expect(reached).toMatchObject({ state: "running", target: 1 });
  const repeated = await reshapeProspects({ table: db.direct, clock, wait }, caller.companyId, 1, FAST);
  expect(repeated.state).toBe("completed");
});

test("a job that is killed at any call continues, and rewrites each row once", async () => {
  const { companyId } = company.caller;
  const before = await contents();
  let shape: 1 | 2 = 1;
  for (const point of killPoints(0)) {
    let calls = 0;
    const dying = calledBy(async (work) => {
      calls++;
      if (calls < point) return work();
      // The call takes effect, but the process is killed before it gets the reply.
      if (calls === point) await work();
      throw new Killed();
    }, db.direct);
    const died = await reshapeProspects({ table: dying, clock, wait }, companyId, shape, FAST).then(
      () => false,
      (error: unknown) => error instanceof Killed,
    );
    const reached = await reshapeProspects({ table: db.direct, clock, wait }, companyId, shape, FAST);
    expect(reached.state).toBe("completed");
    expect(reached.rewritten).toBeLessThanOrEqual(ids.length);
    expect(await shapesOf()).toEqual([shape]);
    expect(await contents()).toEqual(before);
    shape = shape === 1 ? 2 : 1;
    if (!died) break;
  }
});

test("the job uses no more units each second than it may, and reads a block page by page", async () => {
  let waitedMs = 0;
  const still = { now: () => 0 };
  const rest = async (ms: number) => {
    waitedMs += ms;
  };
  db.plan(() => pass);
  await reshapeProspects({ table: db.table, clock: still, wait: rest }, company.caller.companyId, 1, {
    unitsPerSecond: 10,
  });
  const writes = db.calls.filter((name) => name === "TransactWriteItems");
  expect(writes).toHaveLength(Math.ceil(ids.length / 10));
  // Each row of this company costs two write units in a transaction, and the command may use ten units per second.
  expect(waitedMs).toBeGreaterThanOrEqual(((2 * ids.length) / 10) * 1_000);
});
