/** A table with point-in-time recovery, for tests of the restore commands. A test can kill a command at one of its calls. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  DescribeTableCommand,
  DynamoDBClient,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll, afterEach, beforeAll } from "vitest";
import { clientConfig } from "#shared/aws/client-config.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { type RowStore, storesAt } from "../../../infra/cli/company/rows.ts";
import type { RestoreContext } from "../../../infra/cli/restore/point-in-time.ts";
import { startDynamoDb } from "../../../infra/local/engines/dynamodb.ts";
import { createTable, patient, TABLE } from "../../harness/faulty-dynamodb.ts";
import { Killed } from "../../harness/killable.ts";
import { type PointInTimeDynamoDb, startPointInTime } from "../../harness/point-in-time.ts";
import { present } from "../../harness/shapes.ts";

const local = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" }, ...patient };

export interface RestoreScene {
  readonly dynamoDb: PointInTimeDynamoDb;
  readonly client: DynamoDBClient;
  readonly context: RestoreContext;
  readonly sourceArn: string;
  /** The command is killed before the call with the number `killAt`, and before the write with the number `killAtWrite`. */
  readonly kills: { calls: number; killAt: number; writes: number; killAtWrite: number };
  /** Takes back the planned kills. It is also called after each test. */
  spare(): void;
  storeOf(name: string): RowStore;
}

/** Starts the scene before the tests of a file, and stops it after them. Call this function once, at the top of the file. */
export function restoreScene(): { get(): RestoreScene } {
  const undo: (() => unknown)[] = [];
  let scene: RestoreScene | undefined;
  beforeAll(async () => {
    const engine = await startDynamoDb(undefined);
    undo.push(() => engine.stop());
    await createTable(engine.endpoint);
    // AWS can restore a table only to times that are at least five minutes ago. With this lag, the tests would have to wait for five
    // minutes, so the lag is 0 here. A separate test checks the default lag.
    const dynamoDb = await startPointInTime(engine.endpoint, { lagMs: 0, restoreMs: 0 });
    undo.push(() => dynamoDb.stop());
    scene = await openScene(dynamoDb);
    // In AWS, only CloudFormation can set this tag, because AWS reserves the prefix `aws:`. The local DynamoDB server accepts it from any
    // client.
    const engineClient = new DynamoDBClient(clientConfig({ ...local, endpoint: engine.endpoint }));
    const Tags = [{ Key: "aws:cloudformation:stack-name", Value: "Canvassing-Data" }];
    await engineClient.send(new TagResourceCommand({ ResourceArn: scene.sourceArn, Tags }));
  });
  afterEach(() => scene?.spare());
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });
  return { get: () => present(scene) };
}

async function openScene(dynamoDb: PointInTimeDynamoDb): Promise<RestoreScene> {
  const { endpoint } = dynamoDb;
  const never = Number.POSITIVE_INFINITY;
  const spared = { killAt: never, killAtWrite: never };
  const kills = { calls: 0, writes: 0, ...spared };
  const counted = <T>(call: () => Promise<T>, name = ""): Promise<T> => {
    kills.calls++;
    if (!/^(?:BatchGet|Get|Query|Scan)/.test(name) && ++kills.writes >= kills.killAtWrite) kills.killAt = kills.calls;
    if (kills.calls >= kills.killAt) return Promise.reject(new Killed());
    return call();
  };
  const client = new DynamoDBClient(clientConfig({ ...local, endpoint }));
  client.middlewareStack.add((next) => (args) => counted(() => next(args)), { step: "initialize" });
  const documents = dynamoClient({ ...local, endpoint });
  documents.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        counted(() => next(args), commandName),
    {
      step: "initialize",
    },
  );
  const sourceArn = await configure(client);
  return {
    dynamoDb,
    client,
    context: { client, wait: () => sleep(5) },
    sourceArn,
    kills,
    spare: () => void Object.assign(kills, spared),
    storeOf: storesAt(documents, { "read-units": 1e9, "write-units": 1e9 }),
  };
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
