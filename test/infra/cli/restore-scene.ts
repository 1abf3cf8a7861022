/** A table with point-in-time recovery, for tests of the restore commands. A test can kill a command at one of its calls. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  DescribeTableCommand,
  type DynamoDBClient,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll } from "vitest";
import { dynamoClient, rawDynamoClient } from "#shared/aws/dynamodb.ts";
import { storesAt } from "../../../infra/cli/company/rows.ts";
import type { RestoreContext } from "../../../infra/cli/restore/point-in-time.ts";
import { startDynamoDb } from "../../../infra/local/engines/dynamodb.ts";
import { dynamoDbAt } from "../../../infra/local/servers/clients.ts";
import { createTable, LOCAL, patient, TABLE } from "../../harness/faulty-dynamodb.ts";
import { startPointInTime } from "../../harness/point-in-time.ts";
import { present } from "../../harness/shapes.ts";
import { plannedKills } from "./planned-kills.ts";

/** Starts the scene for the tests of a file, and stops it after them. Call this function once, at the top of the file. */
export async function restoreScene() {
  const engine = await startDynamoDb(undefined);
  await createTable(engine.endpoint);
  // AWS can restore a table only to times that are at least five minutes ago. With this lag, the tests would have to wait for five minutes,
  // so the lag is 0 here. A separate test checks the default lag.
  const dynamoDb = await startPointInTime(engine.endpoint, { lagMs: 0, restoreMs: 0 });
  afterAll(async () => {
    await dynamoDb.stop();
    await engine.stop();
  });
  const kills = plannedKills();
  const settings = { ...LOCAL, ...patient, endpoint: dynamoDb.endpoint };
  const client = rawDynamoClient(settings);
  client.middlewareStack.add(kills.middleware, { step: "initialize" });
  const documents = dynamoClient(settings);
  documents.middlewareStack.add(kills.middleware, { step: "initialize" });
  const sourceArn = await configure(client);
  // In AWS, only CloudFormation can set this tag, because AWS reserves the prefix `aws:`. The local DynamoDB server accepts it from any
  // client.
  const Tags = [{ Key: "aws:cloudformation:stack-name", Value: "Canvassing-Data" }];
  await dynamoDbAt(engine.endpoint).send(new TagResourceCommand({ ResourceArn: sourceArn, Tags }));
  const context: RestoreContext = { client, wait: () => sleep(5) };
  const storeOf = storesAt(documents, { "read-units": 1e9, "write-units": 1e9 });
  let targets = 0;
  /** Returns a name for a restored table that no other table has. */
  const newTarget = (): string => `Restored-${targets++}`;
  return { dynamoDb, client, context, sourceArn, kills, storeOf, newTarget };
}

/**
 * When AWS restores a table, the new table lacks some settings of the source table. This function sets all these settings on the source
 * table. Returns the ARN of the table.
 */
async function configure(client: DynamoDBClient): Promise<string> {
  const TableName = TABLE;
  const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } as const;
  await client.send(new UpdateTableCommand({ TableName, StreamSpecification }));
  await client.send(new UpdateTableCommand({ TableName, DeletionProtectionEnabled: true }));
  const TimeToLiveSpecification = { Enabled: true, AttributeName: "expiresAt" };
  await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  const { Table } = await client.send(new DescribeTableCommand({ TableName }));
  const ResourceArn = present(Table?.TableArn);
  await client.send(new TagResourceCommand({ ResourceArn, Tags: [{ Key: "team", Value: "field" }] }));
  const Policy = JSON.stringify({
    Statement: [{ Effect: "Deny", Action: "dynamodb:DeleteTable", Resource: ResourceArn }],
  });
  await client.send(new PutResourcePolicyCommand({ ResourceArn, Policy }));
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true };
  await client.send(new UpdateContinuousBackupsCommand({ TableName, PointInTimeRecoverySpecification }));
  return ResourceArn;
}

/**
 * Waits until the next full second has passed, and returns this second. Every write before the call is earlier than the returned time, and
 * every write after the end of the call is later.
 */
export async function restorePoint(): Promise<Date> {
  const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 1_000);
  await sleep(at.getTime() - Date.now() + 1);
  return at;
}
