/** Tests how restored tables are found and deleted. */
import { UpdateContinuousBackupsCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "vitest";
import { restoredFrom } from "../../../infra/cli/restore/found-tables.ts";
import { deleteRestored, restoreTable, untilActive } from "../../../infra/cli/restore/point-in-time.ts";
import { describeTable } from "../../../infra/local/engines/tables.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import { Killed } from "../../harness/killable.ts";
import { restorePoint, restoreScene } from "./restore-scene.ts";

const { client, context, kills, newTarget } = await restoreScene();
await restorePoint();
const at = await restorePoint();

test("the restored tables of a deployment are those from its tables and from their restored tables, and no other ones", async () => {
  const [first, second] = [newTarget(), newTarget()];
  await restoreTable(context, { source: TABLE, target: first, at });
  const { TableDescription } = await client.send(
    new UpdateTableCommand({
      TableName: first,
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
    }),
  );
  expect(TableDescription?.TableName).toBe(first);
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
