/** Finds the tables that a restore has made from a table of the deployment, because these tables also contain rows of companies. */
import { type DynamoDBClient, DynamoDBServiceException, paginateListTables } from "@aws-sdk/client-dynamodb";
import { describeTable } from "../../local/engines/tables.ts";

/**
 * Finds tables that were restored, directly or through another restored table, from the tables `names` of the deployment. Does not find a
 * table whose source was deleted and is not in `names`. `unread` are tables that the operator may not describe.
 */
export async function restoredFrom(client: DynamoDBClient, names: readonly string[]) {
  const found = new Map<string, Restored>();
  const unread: string[] = [];
  for await (const { TableNames = [] } of paginateListTables({ client }, {})) {
    for (const name of TableNames) {
      const table = await restoredTable(client, name);
      if (table === "unread") unread.push(name);
      else if (table !== undefined) found.set(name, table);
    }
  }
  const family = new Set(names);
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    for (const [name, { source }] of found) if (family.has(source)) family.add(name);
  }
  const restored = [...family].filter((name) => !names.includes(name)).toSorted();
  const unfinished = restored.find((name) => found.get(name)?.isUnfinished === true);
  if (unfinished !== undefined) throw new Error(`${unfinished} is being restored: try again later`);
  return { restored, unread };
}

interface Restored {
  readonly source: string;
  readonly isUnfinished: boolean;
}

/** Returns the source of a restored table. Undefined if no restore made it or it is being deleted, `unread` without the right to see it. */
async function restoredTable(client: DynamoDBClient, name: string): Promise<Restored | "unread" | undefined> {
  try {
    const table = await describeTable(client, name);
    const [, source] = /:table\/([^/]+)$/.exec(String(table?.RestoreSummary?.SourceTableArn)) ?? [];
    if (table === undefined || source === undefined || table.TableStatus === "DELETING") return undefined;
    return { source, isUnfinished: table.TableStatus === "CREATING" };
  } catch (error) {
    if (error instanceof DynamoDBServiceException && error.name === "AccessDeniedException") return "unread";
    throw error;
  }
}
