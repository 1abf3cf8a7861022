/**
 * Tests that the person on call and the eraser have exactly the rights that the documented commands for them use. The test runs these
 * commands against a local service, and records the IAM actions of their requests.
 */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import {
  DescribeTableCommand,
  DynamoDBClient,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import {
  DescribeStreamCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
} from "@aws-sdk/client-dynamodb-streams";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { clientConfig } from "#shared/aws/client-config.ts";
import { factState } from "#shared/db/activity-keys.ts";
import { openTable } from "#shared/db/table.ts";
import { apiClient } from "../../docs/client/client.ts";
import { root } from "../../infra/build/bundle.ts";
import { switchSenders } from "../../infra/cli/senders.ts";
import { sqsAt, streamsAt } from "../../infra/local/servers/clients.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { readConfig } from "../../infra/settings/config.ts";
import { type AccountEndpoint, STACK, startAccountEndpoint } from "../harness/account-endpoint.ts";
import { REGION } from "../harness/cloud/account.ts";
import { serveCloud } from "../harness/cloud/server.ts";
import { deployText, textsOf } from "../harness/cloud/stack-templates.ts";
import { startPointInTime } from "../harness/point-in-time.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { synthesized } from "../infra/template.ts";
import { actionsOfAws, observable, sorted, wordsOf } from "./documented-actions.ts";

/** The factor by which the clock of some commands runs faster, so that waits of 16 minutes take six seconds. */
const SCALE = 160;
const since = Date.now();
const undo: (() => unknown)[] = [];
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

let service: LocalService;
let account: AccountEndpoint;
let table: string;
const credentials = { accessKeyId: "local", secretAccessKey: "local" };
beforeAll(async () => {
  service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true });
  undo.push(() => service.stop());
  const Outputs = z.looseObject({ DynamoDbEndpoint: z.string(), S3Endpoint: z.string(), SqsEndpoint: z.string() });
  const outputs = Outputs.parse(await (await fetch(`${service.url}/local/outputs`)).json());
  const dynamoDb = await startPointInTime(outputs.DynamoDbEndpoint, { lagMs: 0, restoreMs: 0 });
  undo.push(() => dynamoDb.stop());
  table = service.outputs.TableName;
  await prepareTable(dynamoDb.endpoint);
  account = await startAccountEndpoint({ ...outputs, DynamoDbEndpoint: dynamoDb.endpoint });
  undo.push(account.stop);
});

/** Gives the local table the settings of a deployed table. `npm run restore` copies these settings to the restored table. */
async function prepareTable(endpoint: string): Promise<void> {
  const client = new DynamoDBClient(clientConfig({ endpoint, region: "us-east-1", credentials }));
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true };
  await client.send(new UpdateContinuousBackupsCommand({ TableName: table, PointInTimeRecoverySpecification }));
  const TimeToLiveSpecification = { Enabled: true, AttributeName: "expiresAt" };
  await client
    .send(new UpdateTimeToLiveCommand({ TableName: table, TimeToLiveSpecification }))
    .catch((error: unknown) => expect(String(error)).toContain("already enabled"));
  const ResourceArn = (await client.send(new DescribeTableCommand({ TableName: table }))).Table?.TableArn;
  const Policy = JSON.stringify({
    Statement: [{ Effect: "Deny", Principal: "*", Action: "dynamodb:DeleteTable", Resource: ResourceArn }],
  });
  await client.send(new PutResourcePolicyCommand({ ResourceArn, Policy }));
  await client.send(new TagResourceCommand({ ResourceArn, Tags: [{ Key: "team", Value: "field" }] }));
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string, args: readonly string[], isFast: boolean): Promise<Ended> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const clock = { FAST_CLOCK_SINCE: String(since), FAST_CLOCK_SCALE: String(SCALE) };
  const env = { PATH, NODE_COMPILE_CACHE, HOME: tmpdir(), PORT: "9", ...account.environment, ...clock };
  const preload = isFast ? ["--import", join(root, "test/harness/fast-clock.ts")] : [];
  const command = [...preload, `infra/cli/${file}.ts`, ...args, "--stack", STACK];
  return new Promise((resolve) => {
    execFile(process.execPath, command, { cwd: root, env }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

/** Runs commands, each of which must succeed. Returns the IAM actions of their requests. */
async function actionsOf(commands: readonly string[], isFast = false): Promise<string[]> {
  account.actions.clear();
  for (const command of commands) {
    const [file = "", ...args] = wordsOf(command);
    const { code, stderr } = await run(file, args, isFast);
    expect(code, `${command}\n${stderr}`).toBe(0);
  }
  return [...account.actions];
}

async function companyOf(email: string) {
  const token = present(await service.tokenOf(email));
  const api = apiClient({ baseUrl: service.url, accessToken: () => token });
  const { company } = dataOf(await api.GET("/api/me"), 200);
  const { sub } = z.parse(
    z.object({ sub: z.string() }),
    JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()),
  );
  account.users.set(email, sub);
  return { api, id: company.id, name: company.name };
}

/** Returns the position of one record in the table's stream, in the form in which Lambda names failed stream records in a queue message. */
async function positionInStream() {
  const streams = streamsAt(service.outputs.DynamoDbEndpoint);
  const { Streams = [] } = await streams.send(new ListStreamsCommand({ TableName: table }));
  const StreamArn = Streams[0]?.StreamArn;
  const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
  for (const { ShardId = "" } of StreamDescription?.Shards ?? []) {
    const start = new GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" });
    const { ShardIterator } = await streams.send(start);
    const { Records = [] } = await streams.send(new GetRecordsCommand({ ShardIterator }));
    const found = Records.find(({ dynamodb }) => dynamodb?.NewImage?.type?.S === "prospect")?.dynamodb?.SequenceNumber;
    if (found !== undefined) return { shardId: ShardId, startSequenceNumber: found, endSequenceNumber: found };
  }
  throw new Error("the stream has no record of a prospect");
}

/** Damages a row that activity reports read. */
async function damageActivity(companyId: number): Promise<void> {
  const endpoint = service.outputs.DynamoDbEndpoint;
  const client = new DynamoDBClient(clientConfig({ endpoint, region: "us-east-1", credentials }));
  const rows = openTable(table, DynamoDBDocumentClient.from(client));
  await rows.batchPut([{ ...factState(companyId), since: "damaged" }]);
}

/** Runs `npm run senders` against a simulated account, because the local service has no event source mappings. */
async function actionsOfSenders(): Promise<string[]> {
  const cloud = await serveCloud();
  undo.push(() => cloud.stop());
  const config = readConfig({ alarmEmail: "operator@example.com" });
  const { data, service: text } = textsOf(await synthesized(config), config);
  deployText(cloud.cloudFormation, `${STACK}-Data`, data);
  deployText(cloud.cloudFormation, STACK, text);
  const settings = { endpoint: cloud.endpoint, region: REGION, credentials };
  const context = {
    cloud: new CloudFormationClient(settings),
    lambda: new LambdaClient(settings),
    wait: () => Promise.resolve(),
  };
  for (const isOn of [false, true]) await switchSenders(context, STACK, isOn);
  return [...(cloud.used.get(credentials.accessKeyId) ?? [])];
}

test("the commands of the runbook use exactly the rights of the person on call", async () => {
  const { id, api } = await companyOf("owner@acme.test");
  const webhook = { name: "Watching", url: "http://127.0.0.1:9/", registrations: [{ event: "prospect.created" }] };
  dataOf(await api.POST("/api/webhooks", { body: webhook }), 201);
  dataOf(await api.POST("/api/prospects", { body: { name: "Watched" } }), 201);
  const sqs = sqsAt(service.outputs.SqsEndpoint);
  const DDBStreamBatchInfo = { ...(await positionInStream()), batchSize: 1 };
  const MessageBody = JSON.stringify({ version: "1.0", DDBStreamBatchInfo });
  for (const QueueUrl of service.outputs.DeadLetterQueueUrls) {
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
  }
  const used = await actionsOf([
    "dead-letters list",
    "dead-letters redrive deliveries",
    "dead-letters redrive parked-records",
    "dead-letters redrive unflushed-indexes",
    "dead-letters redrive imports",
    "dead-letters redrive exports",
    "dead-letters redrive bulk-jobs",
    `company-index verify --company ${id}`,
    `company-index rebuild --company ${id}`,
    `webhooks reconcile --company ${id}`,
    "canary create",
  ]);
  await damageActivity(id);
  used.push(...(await actionsOf([`company-index repair-activity --company ${id}`])));
  const all = [
    ...used,
    ...(await actionsOfSenders()),
    ...actionsOfAws("runbook.md", ["backup", "events", "service-quotas"]),
  ];
  expect(sorted(all)).toEqual(sorted(observable("on-call")));
});

test("the commands for companies and restores use exactly the rights of the eraser", async () => {
  const { id, name } = await companyOf("owner@globex.test");
  const N = `--company ${id}`;
  const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 1_000);
  await new Promise((resolve) => setTimeout(resolve, at.getTime() - Date.now() + 50));
  const to = at.toISOString().replace(".000Z", "Z");
  const used = await actionsOf([
    "company create --name Created --owner owner@created.test",
    `key create ${N} --by owner@globex.test --name Form --scopes prospects:read`,
    `company suspend ${N}`,
    `company resume ${N}`,
    `company suspend ${N}`,
    `company export ${N}`,
    `restore table --to ${to} --as Canvassing-restored`,
    "restore prepare --table Canvassing-restored",
    "restore verify --table Canvassing-restored --rebuild",
  ]);
  // The next commands restore and delete the company. They refuse to do so until 16 minutes after the suspension of the company.
  await new Promise((resolve) => setTimeout(resolve, (17 * 60_000) / SCALE));
  await actionsOf([`restore company ${N} --from Canvassing-restored`], true);
  const deletion = ["delete", "--company", String(id), "--confirm", name];
  const left = await run("company", deletion, true);
  expect(left.code, "the restored table still contains the company").toBe(1);
  expect(left.stderr).toContain(`the restored table Canvassing-restored contains company ${id}`);
  // `account.actions` has the actions since the last call of `actionsOf`, so it also has those of the refused deletion.
  const deletes = [...account.actions];
  const later = await actionsOf(
    [
      `company delete ${N} --confirm "${name}" --also Canvassing-restored`,
      `company check ${N}`,
      "restore delete --table Canvassing-restored",
    ],
    true,
  );
  expect(sorted([...used, ...deletes, ...later, ...actionsOfAws("keep.md", ["backup", "cloudformation"])])).toEqual(
    sorted(observable("eraser")),
  );
});
