/** Tests the restore of a table that the service used before a switch, and how restored tables are found and deleted. */
import { UpdateContinuousBackupsCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "vitest";
import { iso, systemClock } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { deliveryItem, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { restoredFrom } from "../../../infra/cli/restore/found-tables.ts";
import { deleteRestored, restoreTable, untilActive } from "../../../infra/cli/restore/point-in-time.ts";
import { prepareCopy, restoreWholeTable, type WholeRestore } from "../../../infra/cli/restore/whole-table.ts";
import { describeTable } from "../../../infra/local/engines/tables.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import { Killed } from "../../harness/killable.ts";
import { present } from "../../harness/shapes.ts";
import { COMPANY, company, delivery, restorePoint, restoreScene } from "./restore-scene.ts";

const { client, context, kills, newTarget, storeOf } = await restoreScene();
const waits = delivery(1, "waiting");
const retried = delivery(2, "waiting");
const done = delivery(3, "waiting");
const delivered = (row: StoredDelivery) => deliveryItem({ ...row, state: "delivered", dueShard: undefined });
const erasure = (companyId: number) => ({
  ...keys.erasure(companyId),
  ...{ type: "erasure", companyId, erasedAt: iso(0), rows: { company: 1 } },
});
const user = (isActive: boolean) => ({
  ...keys.identity("kept"),
  ...{ type: "identity", companyId: COMPANY, userId: 1, rights: { isActive } },
});

const { table: earlier } = storeOf(TABLE);
await restorePoint();
const names = [company, { ...company, ...keys.company(129), id: 129 }];
const deliveries = [waits, retried, done].map(deliveryItem);
await earlier.batchPut([{ ...keys.idCounter(), nextBlock: 40 }, ...names, ...deliveries, user(true)]);
const at = await restorePoint();
const again = deliveryItem({ ...retried, attempt: 2 });
await earlier.batchPut([{ ...keys.idCounter(), nextBlock: 50 }, again, delivered(done), erasure(129)]);
await earlier.batchRemove([keys.company(129)]);

/** Restores the table into a new table, to which the service is then switched. Returns the name of the new table. */
async function switched(): Promise<string> {
  const used = newTarget();
  const carry = { live: storeOf(TABLE), restored: storeOf(used), clock: systemClock };
  await restoreWholeTable(context, { source: TABLE, at }, carry);
  return used;
}

/** Restores the earlier table into `target`, while the service uses the table `used`. */
function restoreEarlier(used: string, target: string): Promise<WholeRestore> {
  const carry = { live: storeOf(used), earlier: storeOf(TABLE), restored: storeOf(target), clock: systemClock };
  return restoreWholeTable(context, { source: TABLE, at }, carry);
}

describe("a restore of the table that the service used before a switch", () => {
  test("reuses no id of either table, and has no company that was erased in either table", async () => {
    const [used, target] = [await switched(), newTarget()];
    const { table } = storeOf(used);
    const { nextBlock } = present(await table.get(keys.idCounter()));
    const last = Number(nextBlock) + 7;
    await table.batchPut([{ ...keys.idCounter(), nextBlock: last }, erasure(COMPANY)]);
    // From now on, only the earlier table has the record of the erasure of company 129.
    await table.batchRemove([keys.erasure(129)]);

    const { erasedAgain } = await restoreEarlier(used, target);
    const { table: restored } = storeOf(target);
    expect(await restored.get(keys.idCounter())).toMatchObject({ nextBlock: last + 1_000_000 });
    expect(erasedAgain).toEqual([129, COMPANY]);
    for (const id of erasedAgain) {
      expect(await restored.get(keys.company(id))).toBeUndefined();
      expect(await restored.get(keys.erasure(id))).toMatchObject({ companyId: id });
    }
  });

  test("sends no webhook again that either table has sent, and shows the rights of the table in use", async () => {
    const [used, target] = [await switched(), newTarget()];
    await storeOf(used).table.batchPut([delivered(waits), user(false)]);
    // From now on, only the earlier table has the result of the delivery `done`.
    await storeOf(used).table.batchRemove([keys.delivery(COMPANY, 5, done.id)]);

    const again = await restoreEarlier(used, target);
    const read = ({ id }: StoredDelivery) => storeOf(target).table.get(keys.delivery(COMPANY, 5, id));
    for (const sent of [waits, done]) expect(await read(sent)).toMatchObject({ state: "delivered" });
    expect(await read(retried)).toMatchObject({ state: "waiting", attempt: 2 });
    expect(again.deliveries).toMatchObject({ ended: 2, waiting: 1 });
    expect(again.returningRights).toEqual([
      'company 128 user 1: now {"isActive":false}, after the switch {"isActive":true}',
    ]);
  });

  test("is refused if its target is the table in use; the preparation of this table is refused too", async () => {
    const used = await switched();
    await expect(restoreEarlier(used, used)).rejects.toThrow(`the service uses the table ${used}`);
    const carry = { live: storeOf(used), earlier: storeOf(TABLE), restored: storeOf(used), clock: systemClock };
    await expect(prepareCopy(context, carry)).rejects.toThrow(`the service uses the table ${used}`);
  });
});

test("the restored tables of a deployment are those from its tables and from their restored tables, and no other ones", async () => {
  const [first, second] = [newTarget(), newTarget()];
  await restoreTable(context, { source: TABLE, target: first, at });
  const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } as const;
  await client.send(new UpdateTableCommand({ TableName: first, StreamSpecification }));
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true };
  await untilActive(context, first);
  await client.send(new UpdateContinuousBackupsCommand({ TableName: first, PointInTimeRecoverySpecification }));
  await restorePoint();
  await restoreTable(context, { source: first, target: second, at: await restorePoint() });
  expect(await restoredFrom(client, [first])).toEqual({ restored: [second], unread: [] });
  const { restored } = await restoredFrom(client, [TABLE]);
  expect(restored).toEqual(expect.arrayContaining([first, second]));
  expect(restored).not.toContain(TABLE);
  expect(await restoredFrom(client, [second])).toEqual({ restored: [], unread: [] });
});

describe("the deletion of a restored table", () => {
  test("removes its deletion protection, and ends when it was killed and runs again", async () => {
    await restoreTable(context, { source: TABLE, target: "Deleted", at: await restorePoint() });
    await client.send(new UpdateTableCommand({ TableName: "Deleted", DeletionProtectionEnabled: true }));
    for (let call = 1; ; call++) {
      const result = await kills.at(call, () => deleteRestored(context, "Deleted", TABLE));
      if (!(result instanceof Killed)) break;
    }
    expect(await describeTable(client, "Deleted")).toBeUndefined();
    expect(await deleteRestored(context, "Deleted", TABLE)).toBe(false);
  });

  test("is refused for the table in use, and for a table that no restore has made", async () => {
    await expect(deleteRestored(context, TABLE, TABLE)).rejects.toThrow("the service uses the table");
    await expect(deleteRestored(context, TABLE, "Restored")).rejects.toThrow("does not come from a restore");
    expect(await describeTable(client, TABLE)).toBeDefined();
  });
});
