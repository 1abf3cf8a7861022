/** The table that an admin's command works on: that of the running local service, or of a deployed stack. */
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import * as z from "zod/mini";
import { dynamoClient, openTable, type Table } from "#shared/db/table.ts";
import { serviceUrl } from "./local/address.ts";

export interface TableInUse {
  /** For people. */
  readonly label: string;
  readonly table: Table;
  /** Of the stack's own user pool, if it has one. */
  readonly userPoolId: string | undefined;
}

const LocalOutputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const StackOutputs = z.object({ TableName: z.string(), UserPoolId: z.optional(z.string()) });

/** Nobody waits for one answer of an admin's command, and many calls at once may be slow. */
const patient = { maxAttempts: 6, requestHandler: { connectionTimeout: 5_000, requestTimeout: 30_000 } };

/** Undefined where no local service runs. */
export async function localTable(): Promise<TableInUse | undefined> {
  const base = serviceUrl();
  const answer = await fetch(`${base}/local/outputs`).catch(() => undefined);
  if (answer === undefined || !answer.ok) return undefined;
  const { TableName, DynamoDbEndpoint } = LocalOutputs.parse(await answer.json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: DynamoDbEndpoint, region: "us-east-1", credentials, ...patient });
  return { label: base, table: openTable(TableName, client), userPoolId: undefined };
}

export async function deployedTable(stackName: string): Promise<TableInUse> {
  const { Stacks } = await new CloudFormationClient().send(new DescribeStacksCommand({ StackName: stackName }));
  const listed = (Stacks?.[0]?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]);
  const { TableName, UserPoolId } = StackOutputs.parse(Object.fromEntries(listed));
  const table = openTable(TableName, dynamoClient(patient));
  return { label: `stack ${stackName}`, table, userPoolId: UserPoolId };
}
