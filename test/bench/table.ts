/** A separate table for the benches, on the DynamoDB server of the local service. */

import { dynamoClient } from "#shared/aws/dynamodb.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { startDynamoDb } from "../../infra/local/engines/dynamodb.ts";
import { createTable, patient, TABLE } from "../harness/faulty-dynamodb.ts";

export interface BenchTable {
  readonly endpoint: string;
  /** Returns a new table object. Each table object has separate caches, so the caches of the new one are empty. */
  open(): Table;
  stop(): Promise<void>;
}

/** Number of blocks of 128 ids that are skipped. All prospect ids are then above one million and have the same number of digits. */
const BLOCKS_IN_USE = 8_000;

export async function startBenchTable(): Promise<BenchTable> {
  const server = await startDynamoDb(undefined);
  await createTable(server.endpoint);
  const table = openBenchTable(server.endpoint);
  await table.write({ update: keys.idCounter(), change: { add: { nextBlock: BLOCKS_IN_USE } } });
  return { endpoint: server.endpoint, open: () => openBenchTable(server.endpoint), stop: server.stop };
}

export function openBenchTable(endpoint: string): Table {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  return openTable(TABLE, dynamoClient({ endpoint, region: "us-east-1", credentials, ...patient }));
}
