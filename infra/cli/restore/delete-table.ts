/** Deletes a restored table that no deployment uses any more. Each step can be repeated after the command was killed. */
import { DeleteTableCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { describeTable, type RestoreContext, RestoreRefused, untilActive } from "./point-in-time.ts";

const POLL_MS = 5_000;

/**
 * Deletes the table with its deletion protection. Returns false if it did not exist. Throws RestoreRefused for the table that the service
 * uses, and for a table that no restore has made: only the data stack removes its own table.
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
