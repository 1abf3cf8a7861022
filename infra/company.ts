/** `npm run company -- create --name NAME --owner EMAIL`: the first company and its owner, on a deployed stack or the local service. */
import { parseArgs } from "node:util";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import * as z from "zod/mini";
import { createCompany } from "#shared/companies/create.ts";
import { dynamoClient, openTable, type Table } from "#shared/db/table.ts";
import { ApiError } from "#shared/http/problem.ts";
import { directoryOnly } from "#shared/identity/directory-only.ts";
import type { IdentityProvider } from "#shared/identity/provider.ts";
import { userPool } from "#shared/identity/user-pool.ts";
import { limits } from "#shared/limits.ts";
import { Email, text } from "#shared/schema.ts";
import { worldOn } from "#shared/world.ts";
import { serviceUrl } from "./local/address.ts";
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

/** Where the company is made: a table, and who gives its owner a subject. */
interface Target {
  readonly label: string;
  readonly table: Table;
  readonly identities: IdentityProvider;
}

const LocalOutputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const StackOutputs = z.object({ TableName: z.string(), UserPoolId: z.optional(z.string()) });

/** The running local service, whose issuer signs in everybody whom the directory knows. */
async function localTarget(): Promise<Target | undefined> {
  const base = serviceUrl();
  const answer = await fetch(`${base}/local/outputs`).catch(() => undefined);
  if (answer === undefined || !answer.ok) return undefined;
  const { TableName, DynamoDbEndpoint } = LocalOutputs.parse(await answer.json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: DynamoDbEndpoint, region: "us-east-1", credentials });
  return { label: base, table: openTable(TableName, client), identities: directoryOnly };
}

async function deployedTarget(stackName: string, sub: string | undefined): Promise<Target> {
  const { Stacks } = await new CloudFormationClient().send(new DescribeStacksCommand({ StackName: stackName }));
  const listed = (Stacks?.[0]?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]);
  const { TableName, UserPoolId } = StackOutputs.parse(Object.fromEntries(listed));
  const identities = sub === undefined ? ownPool(UserPoolId) : { takesSubjects: true, invite: async () => ({ sub }) };
  return { label: `stack ${stackName}`, table: openTable(TableName), identities };
}

function ownPool(userPoolId: string | undefined): IdentityProvider {
  if (userPoolId === undefined) throw new Error("this stack has an identity provider of its own: name --sub");
  return userPool(userPoolId);
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
  const made = await createCompany(worldOn(table), {
    name,
    owner: { ...owner, ...(await target.identities.invite(email)) },
  });
  console.log(`company ${made.company.id} ${name} with owner ${made.owner.id} ${email} on ${target.label}`);
}

main().catch((error: unknown) => {
  const detail = error instanceof ApiError || error instanceof Error ? error.message : String(error);
  console.error(detail);
  process.exitCode = 1;
});
