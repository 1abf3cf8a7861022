/** Tests the client of the table while DynamoDB executes only a part of a batch, throttles, fails or loses replies. */
import { describe, expect, test } from "vitest";
import { absent, equals, type Item, present } from "#shared/db/expression.ts";
import { leaseIds } from "#shared/db/ids.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { optimistic } from "#shared/db/plan.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";
import { updateEach } from "#shared/webhooks/settle.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass, serverError, throttle } from "../harness/faulty-dynamodb.ts";

const db = faultyDynamoDb();

let partitions = 0;
const partition = (): string => `test-${partitions++}`;
const row = (pk: string, n: number) => ({ pk, sk: String(n).padStart(4, "0"), n });
const all = (items: AsyncIterable<Item>): Promise<Item[]> => Array.fromAsync(items);

describe("reading", () => {
  test.each([1, 3])("a query that is answered in pages of %i returns every item once and in order", async (limit) => {
    const pk = partition();
    const rows = Array.from({ length: 20 }, (_, n) => row(pk, n));
    await db.direct.batchPut(rows);
    db.plan(() => ({ kind: "ask", change: (body) => ({ ...body, Limit: limit }) }));
    expect(await all(db.sdk.query({ pk }))).toEqual(rows);
    expect(await all(db.sdk.query({ pk, newestFirst: true }))).toEqual(rows.toReversed());
    expect(await all(db.sdk.query({ pk, begins: "001" }))).toEqual(rows.slice(10));
  });

  test("a batch get asks again for unprocessed keys", async () => {
    const pk = partition();
    const rows = Array.from({ length: 230 }, (_, n) => row(pk, n));
    await db.direct.batchPut(rows);
    db.plan((_, number) => (number < 9 ? { kind: "part", share: 0.3 } : pass));
    const found = await db.sdk.batchGet([...rows, row(pk, 999)]);
    expect(found.toSorted((a, b) => Number(a.n) - Number(b.n))).toEqual(rows);
  });

  test("a batch without progress fails with TableBusy", async () => {
    db.plan(() => ({ kind: "part", share: 0 }));
    await expect(db.sdk.batchGet([row(partition(), 1)])).rejects.toBeInstanceOf(TableBusy);
    expect(db.calls.length).toBeGreaterThan(3);
  });

  test("throttling and a server error are retried", async () => {
    const pk = partition();
    await db.direct.batchPut([row(pk, 1)]);
    db.plan((_, number) => (number === 1 ? throttle : number === 2 ? serverError : pass));
    expect(await db.sdk.get(row(pk, 1))).toEqual(row(pk, 1));
    expect(db.calls).toHaveLength(3);
  });
});

describe("writing", () => {
  test.each([1, 99, 100, 101, 230])("%i updates are executed, except those whose conditions fail", async (count) => {
    const pk = partition();
    await db.direct.batchPut(Array.from({ length: count }, (_, n) => row(pk, n)));
    const isWrong = (n: number): boolean => n % 90 === 7;
    const updates = Array.from({ length: count }, (_, n) => ({
      update: row(pk, n),
      change: { set: { n: -1 } },
      when: equals("n", isWrong(n) ? n + 1 : n),
    }));
    const refused = await updateEach(db.sdk, updates);
    expect(refused).toEqual(updates.filter((_, n) => isWrong(n)));
    const after = await all(db.direct.query({ pk }));
    expect(after.map(({ n }) => n)).toEqual(updates.map((_, n) => (isWrong(n) ? n : -1)));
  });

  test("a batch put sends unprocessed items again", async () => {
    const pk = partition();
    const rows = Array.from({ length: 60 }, (_, n) => row(pk, n));
    db.plan((_, number) => (number < 8 ? { kind: "part", share: 0.4 } : pass));
    await db.sdk.batchPut(rows);
    expect(await all(db.direct.query({ pk }))).toEqual(rows);
  });

  test("a conditional put recognises its own write after a lost reply", async () => {
    const put = row(partition(), 1);
    db.plan((_, number) => (number === 1 ? { kind: "lose reply" } : pass));
    await db.sdk.write({ put, when: absent });
    expect(await db.direct.get(put)).toMatchObject(put);
    await expect(db.sdk.write({ put, when: absent })).rejects.toBeInstanceOf(ConditionFailed);
  });

  test("a conditional update whose reply is lost takes effect once", async () => {
    const key = row(partition(), 1);
    await db.direct.write({ put: key });
    db.plan((_, number) => (number === 1 ? { kind: "lose reply" } : pass));
    const item = await db.sdk.write({ update: key, change: { set: { n: 2 } }, when: equals("n", 1) });
    expect(item).toMatchObject({ n: 2 });
    expect(db.calls).toEqual(["UpdateItem", "UpdateItem"]);
  });

  test("a transaction whose reply is lost takes effect once", async () => {
    const key = row(partition(), 1);
    await db.direct.write({ put: key });
    db.plan((_, number) => (number === 1 ? { kind: "lose reply" } : pass));
    await db.sdk.transact([{ update: key, change: { add: { n: 1 } }, when: present }]);
    expect(await db.direct.get(key)).toMatchObject({ n: 2 });
  });

  test("a failed condition is reported with the number of its write and the stored item, and nothing is written", async () => {
    const pk = partition();
    await db.direct.write({ put: row(pk, 1) });
    const failure = db.sdk.transact([row(pk, 2), { ...row(pk, 1), n: 9 }].map((put) => ({ put, when: absent })));
    await expect(failure).rejects.toMatchObject({ failed: [{ index: 1, item: { n: 1 } }] });
    expect(await db.direct.get(row(pk, 2))).toBeUndefined();
  });

  test("lasting conflicts fail with TableBusy, and temporary ones are retried", async () => {
    const cancelled = { kind: "error", code: "TransactionCanceledException", status: 400 } as const;
    const put = row(partition(), 1);
    // DynamoDB gives no reason for this cancelled transaction. The client must retry the transaction, and must not report a failed
    // condition or invalid input.
    db.plan((_, number) => (number < 3 ? cancelled : pass));
    await db.sdk.transact([{ put, when: absent }]);
    db.plan(() => cancelled);
    await expect(db.sdk.transact([{ put }])).rejects.toBeInstanceOf(TableBusy);
  });

  test("fifty optimistic writers of one record lose no update", async () => {
    const key = row(partition(), 0);
    await db.direct.write({ put: key });
    const increment = () =>
      optimistic(async () => {
        const n = Number((await db.direct.get(key))?.n);
        await db.direct.transact([{ put: { ...key, n: n + 1 }, when: equals("n", n) }]);
      });
    await Promise.all(Array.from({ length: 50 }, increment));
    expect(await db.direct.get(key)).toMatchObject({ n: 50 });
  });
});

describe("ids", () => {
  test("four concurrent processes that each take fifty ids never take the same id, even with lost replies", async () => {
    db.plan((_, number) => (number <= 6 ? { kind: "lose reply" } : pass));
    const processes = Array.from({ length: 4 }, () => leaseIds(db.sdk));
    const taken = await Promise.all(
      processes.flatMap((ids) => [
        ...Array.from({ length: 50 }, () => ids.next()),
        ...Array.from({ length: 50 }, () => ids.nextProspect(7)),
        ...Array.from({ length: 10 }, () => ids.nextProspect(8)),
      ]),
    );
    expect(new Set(taken).size).toBe(taken.length);
    expect(taken.every((id) => Number.isSafeInteger(id) && id > 0)).toBe(true);
  });

  test("the id ranges of a company contain all its prospect ids and no id of another company", async () => {
    const ids = leaseIds(db.sdk);
    const taken = [await ids.nextProspect(41), ...(await ids.takeProspects(41, 300)), await ids.nextProspect(41)];
    const foreign = await ids.nextProspect(42);
    const ranges = await all(db.direct.query(keys.prospectRanges(41)));
    const holds = (id: number) =>
      ranges.some(({ from, to }) => Number(from) * 128 <= id && id < (Number(to) + 1) * 128);
    expect(taken.every(holds)).toBe(true);
    expect(holds(foreign)).toBe(false);
  });
});

test("the meter counts requests, units, and the requests that wait for each other (rounds)", async () => {
  const pk = partition();
  await db.direct.batchPut([row(pk, 1), row(pk, 2)]);
  const { usage } = await metered(async () => {
    await Promise.all([db.sdk.get(row(pk, 1)), db.sdk.get(row(pk, 2))]);
    await db.sdk.write({ update: row(pk, 1), change: { set: { n: 5 } } });
    await Promise.all([db.sdk.get(row(pk, 1)), all(db.sdk.query({ pk }))]);
  });
  expect(usage).toEqual({ requests: 5, readUnits: 4, writeUnits: 1, rounds: 3 });
});
