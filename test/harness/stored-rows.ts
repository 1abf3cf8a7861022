/**
 * Reads rows from the SQLite file of a started DynamoDB server. A Scan of the server takes ten times the processor time, because the server
 * makes a JSON document of all rows.
 */
import { DatabaseSync } from "node:sqlite";
import type { Key } from "#shared/db/keys.ts";

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
