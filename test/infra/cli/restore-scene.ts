/** A table with point-in-time recovery, and rows for it, for tests of the restore commands. A test can kill a command at one of its calls. */
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
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { deliveryId, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { storesAt } from "../../../infra/cli/company/rows.ts";
import type { RestoreContext } from "../../../infra/cli/restore/point-in-time.ts";
import { startDynamoDb } from "../../../infra/local/engines/dynamodb.ts";
import { dynamoDbAt } from "../../../infra/local/servers/clients.ts";
import { createTable, LOCAL, patient, TABLE } from "../../harness/faulty-dynamodb.ts";
import { startPointInTime } from "../../harness/point-in-time.ts";
import { present } from "../../harness/shapes.ts";
import { plannedKills } from "./planned-kills.ts";

/** Starts a simulated DynamoDB and creates the table. Call this function once, at the top of a test file. */
export async function restoreScene() {
  const engine = await startDynamoDb(undefined);
  await createTable(engine.endpoint);
  const dynamoDb = await startPointInTime(engine.endpoint);
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
  // In AWS, only CloudFormation can set a tag with the prefix `aws:`. The local server accepts it from any client.
  const Tags = [{ Key: "aws:cloudformation:stack-name", Value: "Canvassing-Data" }];
  await dynamoDbAt(engine.endpoint).send(new TagResourceCommand({ ResourceArn: sourceArn, Tags }));
  const context: RestoreContext = { client, wait: () => sleep(5) };
  const storeOf = storesAt(documents, { "read-units": 1e9, "write-units": 1e9 });
  let targets = 0;
  /** Returns a new name for a restored table. */
  const newTarget = (): string => `Restored-${targets++}`;
  return { dynamoDb, client, context, sourceArn, kills, storeOf, newTarget };
}

/** Sets those settings on the source table that AWS does not give to a restored table. Returns the ARN of the table. */
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

/** Waits for the next full second and returns it as a restore point. A restored table has writes before the call, and none after it. */
export async function restorePoint(): Promise<Date> {
  const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 1_000);
  await sleep(at.getTime() - Date.now() + 1);
  return at;
}

export const COMPANY = 128;
export const company = {
  ...keys.company(COMPANY),
  type: "company",
  id: COMPANY,
  name: "Acme",
  createdAt: iso(0),
  updatedAt: iso(0),
};

export function delivery(
  number: number,
  state: "waiting" | "delivered",
  more: Partial<StoredDelivery> = {},
): StoredDelivery {
  const createdAt = iso(Date.now() - 1_000);
  const id = deliveryId(`event-${number}`, 7, createdAt);
  return {
    type: "delivery",
    id,
    companyId: COMPANY,
    webhookId: 5,
    registrationId: 7,
    event: "prospect.created",
    eventId: `event-${number}`,
    trigger: "automatic",
    state,
    attempt: 1,
    planFrom: 1,
    dueAt: createdAt,
    ...(state === "waiting" && { dueShard: keys.dueShard(id) }),
    createdAt,
    updatedAt: createdAt,
    expiresAt: 4_000_000_000,
    ...more,
  };
}
