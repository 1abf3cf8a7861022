/** `npm run company -- create --name NAME --owner EMAIL`: the first company and its owner, on a deployed stack or the local service. */
import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import {
  AdminCreateUserCommand,
  AdminGetUserCommand,
  CognitoIdentityProviderClient,
  UsernameExistsException,
} from "@aws-sdk/client-cognito-identity-provider";
import * as z from "zod/mini";
import { createCompany } from "#shared/companies/create.ts";
import { dynamoClient, openTable, type Table } from "#shared/db/table.ts";
import { ApiError } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";
import { Email, text } from "#shared/schema.ts";
import { worldOn } from "#shared/world.ts";
import { STACK_NAME } from "./stack.ts";

const usage = `npm run company -- create --name NAME --owner EMAIL
    [--first-name TEXT] [--last-name TEXT]
    [--stack NAME]   a deployed stack (default ${STACK_NAME}), even while a local service runs
    [--sub SUBJECT]  the owner's subject at an identity provider of your own`;

const Input = z.object({
  name: text(limits.name, 1),
  owner: Email,
  "first-name": z._default(text(limits.name), ""),
  "last-name": z._default(text(limits.name), ""),
  stack: z.optional(z.string()),
  sub: z.optional(z.string().check(z.minLength(1), z.maxLength(255))),
});

/** Where the company is made: a table, and how its owner gets a subject. */
interface Target {
  readonly label: string;
  readonly table: Table;
  readonly invite: (email: string) => Promise<string>;
}

const LocalOutputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const StackOutputs = z.object({ TableName: z.string(), UserPoolId: z.optional(z.string()) });

/** The running local service, whose issuer signs in everybody whom the directory knows. */
async function localTarget(): Promise<Target | undefined> {
  const base = `http://127.0.0.1:${process.env.PORT ?? "3000"}`;
  const answer = await fetch(`${base}/local/outputs`).catch(() => undefined);
  if (answer === undefined || !answer.ok) return undefined;
  const { TableName, DynamoDbEndpoint } = LocalOutputs.parse(await answer.json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: DynamoDbEndpoint, region: "us-east-1", credentials });
  return { label: base, table: openTable(TableName, client), invite: async () => randomUUID() };
}

async function deployedTarget(stackName: string, sub: string | undefined): Promise<Target> {
  const { Stacks } = await new CloudFormationClient().send(new DescribeStacksCommand({ StackName: stackName }));
  const listed = (Stacks?.[0]?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]);
  const { TableName, UserPoolId } = StackOutputs.parse(Object.fromEntries(listed));
  const invite = async (email: string): Promise<string> => {
    if (sub !== undefined) return sub;
    if (UserPoolId === undefined) throw new Error("this stack has an identity provider of its own: name --sub");
    return inviteToUserPool(UserPoolId, email);
  };
  return { label: `stack ${stackName}`, table: openTable(TableName), invite };
}

/** Cognito mails the invitation. A user whom the pool knows already keeps the subject, so a second try goes on. */
async function inviteToUserPool(UserPoolId: string, email: string): Promise<string> {
  const pool = new CognitoIdentityProviderClient();
  const UserAttributes = [
    { Name: "email", Value: email },
    { Name: "email_verified", Value: "true" },
  ];
  const attributes = await pool
    .send(new AdminCreateUserCommand({ UserPoolId, Username: email, UserAttributes }))
    .then(({ User }) => User?.Attributes)
    .catch(async (error: unknown) => {
      if (!(error instanceof UsernameExistsException)) throw error;
      return (await pool.send(new AdminGetUserCommand({ UserPoolId, Username: email }))).UserAttributes;
    });
  const sub = attributes?.find(({ Name }) => Name === "sub")?.Value;
  if (sub === undefined) throw new Error("the user pool gave the user no subject");
  return sub;
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(
      ["name", "owner", "first-name", "last-name", "stack", "sub"].map((name) => [name, { type: "string" as const }]),
    ),
  });
  if (positionals.join(" ") !== "create") throw new Error(`usage: ${usage}`);
  const input = z.safeParse(Input, values);
  if (!input.success) {
    const faults = input.error.issues.map(({ path, message }) => `--${path.join(".")}: ${message}`);
    throw new Error(`${faults.join("\n")}\nusage: ${usage}`);
  }
  const { name, owner: email, stack, sub } = input.data;
  const local = stack === undefined && sub === undefined ? await localTarget() : undefined;
  const target = local ?? (await deployedTarget(stack ?? STACK_NAME, sub));
  const { table } = target;
  const owner = { email, firstName: input.data["first-name"], lastName: input.data["last-name"] };
  const made = await createCompany(worldOn(table), { name, owner: { ...owner, sub: await target.invite(email) } });
  console.log(`company ${made.company.id} ${name} with owner ${made.owner.id} ${email} on ${target.label}`);
}

main().catch((error: unknown) => {
  const detail = error instanceof ApiError || error instanceof Error ? error.message : String(error);
  console.error(detail);
  process.exitCode = 1;
});
