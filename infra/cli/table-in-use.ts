/** Finds the deployment that an operator's command works on, by the options `--stage` and `--stack`, and names it on stderr. */
import {
  type CloudFormationClient,
  DescribeStacksCommand,
  type DescribeStacksOutput,
} from "@aws-sdk/client-cloudformation";
import * as z from "zod/mini";
import type { ClientSettings } from "#shared/aws/client-config.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { serviceUrl } from "../local/servers/address.ts";
import { STAGE, STAGE_NAME, stackNameOf } from "../settings/names.ts";
import { cloudFormationClient } from "./clients.ts";
import { shown } from "./command/accepted.ts";
import { nameTarget, WrongUsage } from "./command/options.ts";

export interface TableInUse {
  readonly label: string;
  readonly table: Table;
  readonly outputs: Readonly<Record<string, unknown>> & { readonly TableName: string };
  readonly dynamoDb: ClientSettings;
  readonly sqs: ClientSettings;
  readonly isLocal: boolean;
  /** Undefined for the local service, and with an external identity provider. */
  readonly userPoolId: string | undefined;
}

const LocalOutputs = z.looseObject({ TableName: z.string(), DynamoDbEndpoint: z.string(), SqsEndpoint: z.string() });
const StackOutputs = z.looseObject({ TableName: z.string(), UserPoolId: z.optional(z.string()) });

/** The time-outs are long, because a command sends many concurrent requests and no user waits for it. */
const patient = { attempts: 6, connectMs: 5_000, answerMs: 30_000 };

/** Opens the table of this stack. Without a stack name, opens that of the running local service or, if none runs, of the default stack. */
export async function tableInUse(stackName: string | undefined): Promise<TableInUse> {
  const local = stackName === undefined ? await localTable() : undefined;
  try {
    return local ?? (await deployedTable(stackName));
  } catch (error) {
    if (stackName !== undefined || !(error instanceof NoWayToAws)) throw error;
    throw new Error(`no local service answers at ${serviceUrl()}: start it with npm start; and ${error.message}`);
  }
}

const operator = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } } as const;

async function localTable(): Promise<TableInUse | undefined> {
  const base = serviceUrl();
  const answer = await fetch(`${base}/local/outputs`).catch(() => undefined);
  // The local service is starting. The command must not use the deployed stack by mistake.
  if (answer?.status === 503) throw new Error(`the local service at ${base} is starting: wait for the line "ready"`);
  if (answer === undefined || !answer.ok) return undefined;
  nameTarget(`local service at ${base}`);
  const outputs = LocalOutputs.parse(await answer.json());
  const at = (endpoint: string): ClientSettings => ({ ...patient, ...operator, endpoint });
  const [dynamoDb, sqs] = [at(outputs.DynamoDbEndpoint), at(outputs.SqsEndpoint)];
  const table = openTable(outputs.TableName, dynamoClient(dynamoDb));
  return { label: base, table, outputs, dynamoDb, sqs, isLocal: true, userPoolId: undefined };
}

export async function deployedTable(stackName = stackNameOf(undefined)): Promise<TableInUse> {
  const cloud = cloudFormationClient(patient);
  const { Stacks } = await describe(cloud, stackName);
  const listed = (Stacks?.[0]?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]);
  const outputs = StackOutputs.parse(Object.fromEntries(listed));
  // Use the credentials of `cloud`, so that the SDK looks them up only once.
  const settings = { ...patient, region: await cloud.config.region(), credentials: cloud.config.credentials };
  const table = openTable(outputs.TableName, dynamoClient(settings));
  const calls = { dynamoDb: settings, sqs: settings };
  return { label: `stack ${stackName}`, table, outputs, ...calls, isLocal: false, userPoolId: outputs.UserPoolId };
}

class NoWayToAws extends Error {}

async function describe(cloud: CloudFormationClient, StackName: string): Promise<DescribeStacksOutput> {
  try {
    nameTarget(`stack ${StackName} in ${await cloud.config.region()}`);
    return await cloud.send(new DescribeStacksCommand({ StackName }));
  } catch (error) {
    const missing = error instanceof Error ? missingOf(error) : undefined;
    if (missing === undefined) throw error;
    throw new NoWayToAws(`the stack ${StackName} cannot be found without ${missing}`, { cause: error });
  }
}

/** Returns what the operator must set, for two errors of the SDK whose messages do not say so. Returns undefined for other errors. */
function missingOf({ name, message }: Error): string | undefined {
  if (message === "Region is missing") return "an AWS region: set AWS_REGION";
  if (name !== "CredentialsProviderError") return undefined;
  return "AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
}

export const stackInput = { stage: z.optional(z.string()), stack: z.optional(z.string()) };

export const stackUsage = `    [--stage NAME]   the deployment of this stage, even while a local service runs
    [--stack NAME]   the deployment with this stack, even while a local service runs (default ${stackNameOf(undefined)})`;

/** Returns the name of the service stack, or undefined without an option. Throws WrongUsage for both options or an invalid name. */
export function chosenStack({ stage, stack }: { stage?: string | undefined; stack?: string | undefined }) {
  if (stage !== undefined && stack !== undefined)
    throw new WrongUsage("--stage and --stack cannot be combined: --stage test means --stack Canvassing-test");
  if (stage !== undefined && !STAGE_NAME.test(stage))
    throw new WrongUsage(`--stage: must be ${STAGE}, and not ${shown(stage)}`);
  if (stack !== undefined && !/^\S+$/.test(stack)) {
    throw new WrongUsage(`--stack: must be the name of a stack, and not ${shown(stack)}`);
  }
  return stage === undefined ? stack : stackNameOf(stage);
}
