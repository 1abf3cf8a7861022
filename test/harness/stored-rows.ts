/**
 * Reads rows from the SQLite file of a started DynamoDB server. A Scan of the server takes ten times the processor time, because the server
 * makes a JSON document of all rows.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Key } from "#shared/db/keys.ts";
import { type DynamoDbServer, startDynamoDb } from "../../infra/local/engines/dynamodb.ts";

export interface ServerWithFile extends DynamoDbServer {
  readonly database: string;
}

/** Starts a server with an empty file: on the file system in memory, or in the directory of temporary files if there is too little memory. */
export async function startServerWithFile(): Promise<ServerWithFile> {
  const server = await startDynamoDb(undefined);
  if (server.database !== undefined) return { ...server, database: server.database };
  await server.stop();
  const database = join(mkdtempSync(join(tmpdir(), "canvassing-")), "tables.db");
  return { ...(await startDynamoDb(database)), database };
}

/**
 * Returns the keys and the items of a table, as the JSON text of the DynamoDB API, whose partition key begins with `partition`. The rows are
 * in no order.
 */
export function storedRows(file: string, table: string, partition = ""): (Key & { readonly item: string })[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    // The server stores each key behind its type.
    const sql = `SELECT substr(pk, 3) pk, substr(sk, 3) sk, item_json FROM "${table}" WHERE pk >= ? AND pk < ?`;
    const rows = database.prepare(sql).all(`S:${partition}`, `S:${partition}\u{10ffff}`);
    return rows.map(({ pk, sk, item_json }) => ({ pk: `${pk}`, sk: `${sk}`, item: `${item_json}` }));
  } finally {
    database.close();
  }
}
