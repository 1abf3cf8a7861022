/** Deletes a restored table that no deployment uses any more. If the command is killed, it can be run again. */
import { DeleteTableCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { describeTable, type RestoreContext, RestoreRefused, untilActive } from "./point-in-time.ts";

const POLL_MS = 5_000;

/**
 * Removes the table's deletion protection, deletes the table, and waits until it no longer exists. Returns false if there was no such
 * table. Throws RestoreRefused if the service uses the table, or if the table was not created by a restore.
 *
 * @param used the name of the table that the service uses
 */
export async function deleteRestored(context: RestoreContext, name: string, used: string): Promise<boolean> {
  const { client } = context;
  if (name === used) throw new RestoreRefused(`the service uses the table ${name}: it is not deleted`);
  const found = await describeTable(client, name);
  if (found === undefined) return false;
  if (found.TableStatus !== "DELETING") {
    if (found.RestoreSummary === undefined) {
      throw new RestoreRefused(`the table ${name} does not come from a restore: it is not deleted`);
    }
    const { DeletionProtectionEnabled } = await untilActive(context, name);
    if (DeletionProtectionEnabled === true) {
      await client.send(new UpdateTableCommand({ TableName: name, DeletionProtectionEnabled: false }));
      await untilActive(context, name);
    }
    await client.send(new DeleteTableCommand({ TableName: name }));
  }
  while ((await describeTable(client, name)) !== undefined) {
    context.progress?.(`${name} is being deleted`);
    await context.wait(POLL_MS);
  }
  return true;
}
