/** Tests how the whole table is restored to an earlier time, into a new table. */
import {
  CreateTableCommand,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  GetResourcePolicyCommand,
  ListTagsOfResourceCommand,
} from "@aws-sdk/client-dynamodb";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { type Clock, iso, systemClock } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { debounceKeys } from "#shared/db/webhook-keys.ts";
import { deliveryItem, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { RowStore } from "../../../infra/cli/company/rows.ts";
import { restoreTable } from "../../../infra/cli/restore/point-in-time.ts";
import { faultReport, indexFaults } from "../../../infra/cli/restore/verify.ts";
import { prepareCopy, restoreWholeTable } from "../../../infra/cli/restore/whole-table.ts";
import { startDynamoDb } from "../../../infra/local/engines/dynamodb.ts";
import { describeTable } from "../../../infra/local/engines/tables.ts";
import { dynamoDbAt } from "../../../infra/local/servers/clients.ts";
import { createTable, TABLE } from "../../harness/faulty-dynamodb.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { present } from "../../harness/shapes.ts";
import { COMPANY, company, delivery, restorePoint, restoreScene } from "./restore-scene.ts";

const { client, context, dynamoDb, kills, newTarget, sourceArn, storeOf } = await restoreScene();

async function rowsOf(TableName: string): Promise<Item[]> {
  const pages = paginateScan({ client: storeOf(TableName).client }, { TableName, ConsistentRead: true });
  const rows = (await Array.fromAsync(pages)).flatMap(({ Items = [] }) => Items);
  return rows.toSorted((one, other) => `${one.pk} ${one.sk}`.localeCompare(`${other.pk} ${other.sk}`));
}

/** Returns the rows of a table without `writeId`, because each write gives it a new value. */
const savedIn = async (TableName: string) => (await rowsOf(TableName)).map(({ writeId: _, ...row }) => row);

const waits = delivery(1, "waiting");
const retried = delivery(2, "waiting");
const done = delivery(3, "waiting", { recordId: 9 });
const forgotten = delivery(4, "waiting");
const window = debounceKeys.window({ companyId: COMPANY, webhookId: 5, registrationId: 7, recordId: 9 });
const fanOut = { pk: `C#${COMPANY}#D#F`, sk: "E#1#event-5", type: "fanOut", dueShard: "DUE#0", dueAt: "2026" };

/** The fields of an API key that `npm run restore` compares between the live table and the restored table. */
const apiKey = (id: string, role = "admin") => ({
  id,
  scopes: ["audit:read"],
  creatorRights: { role, permissions: [] },
  expiresAt: iso(0),
});
const ringOf = (held: readonly ReturnType<typeof apiKey>[]) => ({
  ...keys.keyRing("ring"),
  ...{ type: "keyRing", companyId: COMPANY, userId: 4, rights: { isActive: true }, keys: held },
});

const { table: live } = storeOf(TABLE);
await restorePoint();
await live.batchPut([
  { ...keys.idCounter(), nextBlock: 40 },
  company,
  { pk: "C#129#REF", sk: "COMPANY", type: "company", id: 129, name: "Erased", createdAt: iso(0), updatedAt: iso(0) },
  { pk: `C#${COMPANY}#P#1`, sk: "P#1", type: "test", value: "before" },
  { pk: `C#${COMPANY}#P#1`, sk: "P#2", type: "test", value: "deleted later" },
  ...[waits, retried, done, forgotten].map(deliveryItem),
  { ...window, type: "window", deliveryId: done.id },
  fanOut,
  { ...keys.identity("kept"), type: "identity", companyId: COMPANY, userId: 1, rights: { isActive: true } },
  { ...keys.identity("disabled"), type: "identity", companyId: COMPANY, userId: 2, rights: { isActive: true } },
  { ...keys.identity("suspended"), type: "identity", companyId: COMPANY, userId: 3, rights: { isActive: true } },
  ringOf([apiKey("kept"), apiKey("revoked"), apiKey("lowered")]),
]);
const at = await restorePoint();
const atPoint = await rowsOf(TABLE);
await live.batchPut([
  { ...keys.idCounter(), nextBlock: 50 },
  { pk: `C#${COMPANY}#P#1`, sk: "P#1", type: "test", value: "after" },
  { pk: `C#${COMPANY}#P#1`, sk: "P#3", type: "test", value: "new" },
  deliveryItem({ ...delivery(2, "waiting"), ...retried, attempt: 2 }),
  { ...keys.attempt(COMPANY, 5, retried.id, 1), type: "attempt", number: 1 },
  deliveryItem({ ...done, state: "delivered", dueShard: undefined }),
  { ...keys.identity("disabled"), type: "identity", companyId: COMPANY, userId: 2, rights: { isActive: false } },
  { ...keys.identity("suspended"), type: "identity", companyId: COMPANY, userId: 3, suspendedAt: iso(0) },
  ringOf([apiKey("kept"), apiKey("lowered", "sales"), apiKey("added")]),
  { ...keys.erasure(129), type: "erasure", companyId: 129, erasedAt: iso(0), rows: { company: 1 } },
]);
await live.batchRemove([
  { pk: `C#${COMPANY}#P#1`, sk: "P#2" },
  keys.delivery(COMPANY, 5, forgotten.id),
  keys.company(129),
  window,
  fanOut,
]);

/** At this time, all deliveries of the tests have expired, so the live table may lack them. */
const afterExpiry: Clock = { now: () => 4_000_000_001_000 };

const carryTo = (target: string) => ({ live: storeOf(TABLE), restored: storeOf(target), clock: afterExpiry });
const restore = (target: string) => restoreWholeTable(context, { source: TABLE, at }, carryTo(target));

describe("a restored table", () => {
  test("has every row of the point, and none of the changes after it", async () => {
    const target = newTarget();
    await restoreTable(context, { source: TABLE, target, at });
    expect(await rowsOf(target)).toEqual(atPoint);
  });

  test("gets each setting that AWS does not restore; the stream is enabled last", async () => {
    const target = newTarget();
    const { streamArn } = await restore(target);
    const { Table } = await client.send(new DescribeTableCommand({ TableName: target }));
    const arn = present(Table?.TableArn);
    expect(Table).toMatchObject({
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
      LatestStreamArn: streamArn,
      DeletionProtectionEnabled: true,
      GlobalSecondaryIndexes: [{ IndexName: "due" }],
    });
    const ttl = await client.send(new DescribeTimeToLiveCommand({ TableName: target }));
    expect(ttl.TimeToLiveDescription).toEqual({ TimeToLiveStatus: "ENABLED", AttributeName: "expiresAt" });
    const backups = await client.send(new DescribeContinuousBackupsCommand({ TableName: target }));
    expect(backups.ContinuousBackupsDescription?.PointInTimeRecoveryDescription).toMatchObject({
      PointInTimeRecoveryStatus: "ENABLED",
      RecoveryPeriodInDays: 35,
    });
    const { Tags } = await client.send(new ListTagsOfResourceCommand({ ResourceArn: arn }));
    expect(Tags).toEqual([{ Key: "team", Value: "field" }]);
    const { Policy = "" } = await client.send(new GetResourcePolicyCommand({ ResourceArn: arn }));
    expect(Policy).toContain(arn);
    expect(Policy).not.toContain(`"${sourceArn}"`);
    const changes = dynamoDb.calls.filter((call) => /^(?:Batch|Put|Update|Transact|Tag)/.test(call));
    expect(changes.at(-1)).toBe(`UpdateTable ${target}`);
  });

  test("never gives an id again that was given after the point, even if the live table gives more", async () => {
    const target = newTarget();
    await restore(target);
    const { table } = storeOf(target);
    const { nextBlock } = present(await table.get(keys.idCounter()));
    expect(nextBlock).toBe(50 + 1_000_000);
    await restore(target);
    expect((await table.get(keys.idCounter()))?.nextBlock).toBe(nextBlock);
  });

  test("has no company that was erased after the point", async () => {
    const target = newTarget();
    expect((await restore(target)).erasedAgain).toEqual([129]);
    const { table } = storeOf(target);
    expect(await table.get(keys.company(129))).toBeUndefined();
    expect(await table.get(keys.erasure(129))).toMatchObject({ companyId: 129 });
  });

  test("names the users and keys whose rights it gives back", async () => {
    const [admin, sales] = [apiKey("lowered"), apiKey("lowered", "sales")].map((key) => JSON.stringify(key));
    expect((await restore(newTarget())).returningRights.toSorted()).toEqual([
      'company 128 user 2: now {"isActive":false}, after the switch {"isActive":true}',
      'company 128 user 3: now suspended, after the switch {"isActive":true}',
      `company 128 user 4 key lowered: now ${sales}, after the switch ${admin}`,
      `company 128 user 4 key revoked: now revoked, after the switch ${JSON.stringify(apiKey("revoked"))}`,
    ]);
  });

  test("sends no webhook again that was sent after the point, and names the work that may", async () => {
    const target = newTarget();
    const { deliveries } = await restore(target);
    expect(deliveries).toEqual({ ended: 2, waiting: 2, continued: [`${fanOut.pk} ${fanOut.sk}`] });
    const { table } = storeOf(target);
    const read = ({ id }: StoredDelivery) => table.get(keys.delivery(COMPANY, 5, id));
    expect(await read(waits)).toMatchObject({ state: "waiting", attempt: 1, dueShard: keys.dueShard(waits.id) });
    expect(await read(retried)).toMatchObject({ state: "waiting", attempt: 2 });
    expect(await table.get(keys.attempt(COMPANY, 5, retried.id, 1))).toMatchObject({ number: 1 });
    expect(await read(done)).toMatchObject({ state: "delivered" });
    expect(await read(done)).not.toHaveProperty("dueShard");
    expect(await read(forgotten)).toBeUndefined();
    expect(await table.get(window)).toBeUndefined();
  });
});

describe("a restore", () => {
  test("that is killed at any call ends when it runs again", { tags: ["sized"] }, async () => {
    const whole = newTarget();
    await restore(whole);
    const expected = await savedIn(whole);
    for (const call of killPoints(0)) {
      const target = newTarget();
      const first = await kills.at(call, () => restore(target));
      const { streamArn } = await restore(target);
      expect(streamArn).toContain(target);
      expect(await savedIn(target)).toEqual(expected);
      if (!(first instanceof Killed)) break;
    }
  });

  test("is refused outside of the restorable time, and into another table", async () => {
    const source = TABLE;
    const soon = new Date(at.getTime() + 3_600_000);
    for (const outside of [soon, new Date(0)]) {
      const refused = restoreTable(context, { source, target: newTarget(), at: outside });
      await expect(refused).rejects.toThrow("at any second from");
    }
    await expect(restoreTable(context, { source, target: TABLE, at })).rejects.toThrow("is no restore of");
    const target = newTarget();
    await restoreTable(context, { source, target, at });
    const earlier = new Date(at.getTime() - 1_000);
    await expect(restoreTable(context, { source, target, at: earlier })).rejects.toThrow("is no restore of");
    await expect(restoreTable(context, { source: target, target: newTarget(), at })).rejects.toThrow(
      "has no point-in-time recovery",
    );
  });
});

test("a restore from a server without point-in-time recovery is refused with the reason", async () => {
  const engine = await startDynamoDb(undefined);
  await createTable(engine.endpoint);
  const request = { source: TABLE, target: "Nowhere", at: new Date() };
  await expect(restoreTable({ ...context, client: dynamoDbAt(engine.endpoint) }, request)).rejects.toThrow(
    `the server of the table ${TABLE} has no point-in-time recovery`,
  );
  await engine.stop();
});

describe("a table that AWS Backup has restored", () => {
  /** Restores a table as AWS Backup does: with its rows, keys and indexes, and without its other settings. Returns its name. */
  async function copyOf(): Promise<string> {
    const target = newTarget();
    await restoreTable(context, { source: TABLE, target, at });
    return target;
  }
  const prepare = (target: string) => prepareCopy(context, carryTo(target));

  test("is prepared as a restored table, and the command may be killed at any call", async () => {
    const whole = newTarget();
    const { streamArn: _, ...expected } = await restore(whole);
    const rows = await savedIn(whole);
    for (const call of killPoints(0)) {
      const target = await copyOf();
      const first = await kills.at(call, () => prepare(target));
      const { streamArn } = await prepare(target);
      expect(await savedIn(target)).toEqual(rows);
      expect(await describeTable(client, target)).toMatchObject({
        StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
        LatestStreamArn: streamArn,
        DeletionProtectionEnabled: true,
      });
      if (first instanceof Killed) continue;
      expect(first).toMatchObject(expected);
      break;
    }
  });

  test("is refused if the service uses it, if it does not exist, and if it is no table of the service", async () => {
    await expect(prepare(TABLE)).rejects.toThrow("the service uses the table");
    await expect(prepare("Nowhere")).rejects.toThrow("there is no table Nowhere");
    const name = (AttributeName: string) => ({ AttributeName, AttributeType: "S" as const });
    await client.send(
      new CreateTableCommand({
        TableName: "Other",
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [name("id")],
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      }),
    );
    await expect(prepare("Other")).rejects.toThrow("has other keys or indexes");
    const target = await copyOf();
    await storeOf(target).table.batchRemove([keys.idCounter()]);
    await expect(prepare(target)).rejects.toThrow("it has no counter of ids");
  });
});

test("the way back to the old table erases companies that were erased meanwhile, sends no webhook twice and loses none", async () => {
  const target = newTarget();
  const [old, used] = [storeOf(TABLE), storeOf(target)];
  const gone = { ...company, ...keys.company(130), id: 130 };
  const rowOf130 = { pk: "C#130#P#1", sk: "P#1", type: "test" };
  await restore(target);
  const later = delivery(5, "waiting");
  await old.table.batchPut([gone, rowOf130, deliveryItem(later)]);
  await used.table.batchPut([
    { ...keys.erasure(130), type: "erasure", companyId: 130, erasedAt: iso(0), rows: { company: 1 } },
    deliveryItem({ ...waits, state: "delivered", dueShard: undefined }),
  ]);
  const carry = { live: used, restored: old, clock: systemClock };
  const back = await prepareCopy(context, carry);
  expect(back.erasedAgain).toEqual([130]);
  for (const key of [keys.company(130), rowOf130]) expect(await old.table.get(key)).toBeUndefined();
  expect(await old.table.get(keys.erasure(130))).toMatchObject({ companyId: 130 });
  const read = ({ id }: StoredDelivery) => old.table.get(keys.delivery(COMPANY, 5, id));
  expect(await read(waits)).toMatchObject({ state: "delivered" });
  expect(await read(later)).toMatchObject({ state: "waiting", dueShard: keys.dueShard(later.id) });
  const counterOf = async ({ table }: RowStore) => Number((await table.get(keys.idCounter()))?.nextBlock);
  expect(await counterOf(old)).toBeGreaterThan(await counterOf(used));
});

test("the report of a check has the number of all faults, and ten of them", () => {
  const faults = Array.from({ length: 12 }, (_, i) => `fault ${i}`);
  expect(faultReport([])).toBe("no faults");
  expect(faultReport(["a", "b"])).toBe("2 faults: a; b");
  expect(faultReport(faults.slice(0, 1))).toBe("1 fault: fault 0");
  expect(faultReport(faults)).toBe(`12 faults: ${faults.slice(0, 10).join("; ")}; and 2 more`);
});

test("records that differed and were not compared again are a fault, so that a check does not report an unknown index as good", () => {
  expect(indexFaults({ faults: [], unexamined: 0 })).toEqual([]);
  expect(indexFaults({ faults: ["a"], unexamined: 3 })).toEqual([
    "3 more records differed and were not compared again",
    "a",
  ]);
});
