/**
 * Tests that the person on call and the eraser (who deletes companies) have exactly the rights that their documented commands use. The
 * commands run against a local service, which records the IAM actions of the requests.
 */
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import {
  DescribeTableCommand,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterAll, expect, onTestFinished, test } from "vitest";
import * as z from "zod/mini";
import { factState } from "#shared/db/activity-keys.ts";
import { apiClient } from "../../docs/client/client.ts";
import { switchSenders } from "../../infra/cli/senders.ts";
import { dynamoDbAt, sqsAt, streamsAt } from "../../infra/local/servers/clients.ts";
import { startLocal } from "../../infra/local/service.ts";
import { readConfig } from "../../infra/settings/config.ts";
import { STACK, startAccountEndpoint } from "../harness/account-endpoint.ts";
import { REGION } from "../harness/cloud/account.ts";
import { serveCloud } from "../harness/cloud/server.ts";
import { deployAll } from "../harness/cloud/stacks.ts";
import { LOCAL, tableAt } from "../harness/faulty-dynamodb.ts";
import { startPointInTime } from "../harness/point-in-time.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { FAST_SCALE, startOnAccount } from "../infra/cli/command-process.ts";
import { restorePoint } from "../infra/cli/restore-scene.ts";
import { recordInStream } from "../infra/cli/table-stream.ts";
import { actionsOfAws, observable, sorted, wordsOf } from "./documented-actions.ts";

const since = Date.now();

const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true });
afterAll(() => service.stop());
const { TableName: table, DynamoDbEndpoint } = service.outputs;
const dynamoDb = await startPointInTime(DynamoDbEndpoint);
afterAll(() => dynamoDb.stop());
await prepareTable(dynamoDb.endpoint);
const account = await startAccountEndpoint({ ...service.outputs, DynamoDbEndpoint: dynamoDb.endpoint });
afterAll(() => account.stop());

/** Gives the local table the settings of a deployed table. `npm run restore` copies these settings to the restored table. */
async function prepareTable(endpoint: string): Promise<void> {
  const client = dynamoDbAt(endpoint);
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

const run = (file: string, args: readonly string[], isFast: boolean) =>
  startOnAccount(account, file, args, isFast ? since : undefined).ended;

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

/** Runs `npm run senders` against a simulated account, because the local service has no event source mappings. */
async function actionsOfSenders(): Promise<string[]> {
  const { cloud, endpoint, actions, stop } = await serveCloud();
  onTestFinished(() => stop());
  await deployAll(cloud, readConfig({ alarmEmail: "operator@example.com" }));
  const settings = { ...LOCAL, endpoint, region: REGION };
  const context = {
    cloud: new CloudFormationClient(settings),
    lambda: new LambdaClient(settings),
    wait: () => Promise.resolve(),
  };
  for (const isOn of [false, true]) await switchSenders(context, STACK, isOn);
  return [...actions];
}

test("the commands of the runbook use exactly the rights of the person on call", async () => {
  const { id, api } = await companyOf("owner@acme.test");
  const webhook = { name: "Watching", url: "http://127.0.0.1:9/", registrations: [{ event: "prospect.created" }] };
  dataOf(await api.POST("/api/webhooks", { body: webhook }), 201);
  dataOf(await api.POST("/api/prospects", { body: { name: "Watched" } }), 201);
  const sqs = sqsAt(service.outputs.SqsEndpoint);
  const { position } = await recordInStream(
    streamsAt(DynamoDbEndpoint),
    table,
    ({ dynamodb }) => dynamodb?.NewImage?.type?.S === "prospect",
  );
  const DDBStreamBatchInfo = { ...position, batchSize: 1 };
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
  // The command repairs a row that activity reports read, so the test first damages this row.
  await tableAt(DynamoDbEndpoint, table).batchPut([{ ...factState(id), since: "damaged" }]);
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
  const to = (await restorePoint()).toISOString().replace(".000Z", "Z");
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
  await new Promise((resolve) => setTimeout(resolve, (17 * 60_000) / FAST_SCALE));
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
