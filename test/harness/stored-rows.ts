/** Reads rows from the SQLite file of a DynamoDB server, with a tenth of the processor time of a Scan. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Key } from "#shared/db/keys.ts";
import { type DynamoDbServer, startDynamoDb } from "../../infra/local/engines/dynamodb.ts";

export interface ServerWithFile extends DynamoDbServer {
  readonly database: string;
}

/** Starts a server with an empty data file. The file is on the file system in memory, or in the temporary directory if memory is scarce. */
export async function startServerWithFile(): Promise<ServerWithFile> {
  const server = await startDynamoDb(undefined);
  if (server.database !== undefined) return { ...server, database: server.database };
  await server.stop();
  const database = join(mkdtempSync(join(tmpdir(), "canvassing-")), "tables.db");
  return { ...(await startDynamoDb(database)), database };
}

/** Returns the rows whose partition key begins with `partition`, in no order. `item` is JSON in the form of the DynamoDB API. */
export function storedRows(file: string, table: string, partition = ""): (Key & { readonly item: string })[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    // The server stores each key with a prefix for its type. The prefix of a string is `S:`.
    const sql = `SELECT substr(pk, 3) pk, substr(sk, 3) sk, item_json FROM "${table}" WHERE pk >= ? AND pk < ?`;
    const rows = database.prepare(sql).all(`S:${partition}`, `S:${partition}\u{10ffff}`);
    return rows.map(({ pk, sk, item_json }) => ({ pk: `${pk}`, sk: `${sk}`, item: `${item_json}` }));
  } finally {
    database.close();
  }
}
