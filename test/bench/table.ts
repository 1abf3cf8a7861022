/** A separate table for the benches, on the DynamoDB server of the local service. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { startDynamoDb } from "../../infra/local/engines/dynamodb.ts";
import { createTable, LOCAL, tableAt } from "../harness/faulty-dynamodb.ts";

export interface BenchTable {
  readonly endpoint: string;
  /** Returns a new table object, whose caches are empty. */
  open(): Table;
  stop(): Promise<void>;
}

/** Blocks of 128 ids that count as used, so that all prospect ids are above one million and have the same number of digits. */
const BLOCKS_IN_USE = 8_000;

export async function startBenchTable(): Promise<BenchTable> {
  const server = await startDynamoDb(undefined);
  await createTable(server.endpoint);
  const table = tableAt(server.endpoint);
  await table.write({ update: keys.idCounter(), change: { add: { nextBlock: BLOCKS_IN_USE } } });
  return { endpoint: server.endpoint, open: () => tableAt(server.endpoint), stop: server.stop };
}

/** A client of the SDK without the settings of the service, for calls that are compared with the service. */
export const plainSdk = (endpoint: string): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(new DynamoDBClient({ endpoint, ...LOCAL }), {
    marshallOptions: { removeUndefinedValues: true },
  });
