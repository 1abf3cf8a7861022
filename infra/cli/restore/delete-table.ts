/** Deletes a restored table that no deployment uses any more. It may be killed and repeated. */
import { DeleteTableCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { describeTable, type RestoreContext, RestoreRefused, untilActive } from "./point-in-time.ts";

const POLL_MS = 5_000;

/**
 * Returns false if there was no such table. Throws RestoreRefused if it is `used`, the table of the service, or no restore has created it.
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
