/** Implements `npm run canary -- create`: creates the company and user of the scheduled smoke test, or renews the password. */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { cognitoClient, createPoolUser, findPoolUser, setPassword, type UserPool } from "#shared/aws/cognito.ts";
import { openParameters, type Parameters } from "#shared/aws/ssm.ts";
import { contextOn } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError } from "#shared/errors.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { OAuthClient } from "#shared/smoke/sign-in.ts";
import { canaryParameter, stackNameOf } from "../settings/names.ts";
import { textUpTo } from "./command/accepted.ts";
import { command, runCommands, WrongUsage } from "./command/options.ts";
import { chosenStack, deployedTable, stackInput, stackUsage } from "./table-in-use.ts";

const usage = `npm run canary -- create
    makes the company "Smoke test" with one user, and keeps the user's password in Parameter Store; safe to repeat
npm run canary -- create --sub SUBJECT
    with an external issuer: SUBJECT is the subject of the tokens of a client. The environment variables
    SMOKE_TOKEN_URL, SMOKE_CLIENT_ID and SMOKE_CLIENT_SECRET have its credentials, which are kept in Parameter Store
${stackUsage}
exit code 0: done, 1: failed, 2: wrong usage`;

/** Nobody receives mail at this address, because `.invalid` is reserved for domains that do not exist. */
const EMAIL = "smoke-test@canary.invalid";
const COMPANY = "Smoke test";

interface CanarySetup {
  readonly stackName: string;
  readonly table: Table;
  readonly parameters: Parameters;
  readonly pool?: UserPool;
  readonly client?: { readonly sub: string; readonly credentials: OAuthClient };
}

/** Creates the company if it does not exist, and stores new credentials of its user. Returns a sentence for the operator. */
export async function createCanary({ stackName, table, parameters, pool, client }: CanarySetup): Promise<string> {
  const signIn = client ?? (pool === undefined ? undefined : await userOf(pool));
  if (signIn === undefined) throw new WrongUsage(`this stack uses an external identity provider\nusage: ${usage}`);
  const owner = { email: EMAIL, firstName: "Smoke", lastName: "Test", sub: signIn.sub };
  const made = await createCompany(contextOn(table), { name: COMPANY, owner }).catch((error: unknown) => {
    // An earlier call has created the company and the user, so only the credentials are new.
    if (error instanceof ApiError && error.code === "conflict") return undefined;
    throw error;
  });
  await parameters.write(canaryParameter(stackName), JSON.stringify(signIn.credentials));
  return made === undefined
    ? `the user of company "${COMPANY}" has new credentials`
    : `company ${made.company.id} "${COMPANY}" has the user ${EMAIL}`;
}

/** Gives the user a random password that no person knows. Adds a missing user without sending a mail. */
async function userOf(pool: UserPool) {
  const user = (await findPoolUser(pool, EMAIL)) ?? (await createPoolUser(pool, EMAIL, { mail: false }));
  if (user?.sub === undefined) throw new Error("the user pool gave the user no subject");
  // The prefix contains one character of each kind that the user pool requires. The random characters may lack one kind.
  const password = `Aa1!${randomBytes(24).toString("base64url")}`;
  await setPassword(pool, EMAIL, password);
  return { sub: user.sub, credentials: { user: EMAIL, password } };
}

/** Returns a client's credentials from the variables `SMOKE_…`. An error names a missing variable, but never shows a value. */
function credentialsIn(env: NodeJS.ProcessEnv): OAuthClient {
  const { SMOKE_TOKEN_URL: tokenUrl, SMOKE_CLIENT_ID: clientId, SMOKE_CLIENT_SECRET: clientSecret } = env;
  const needed = { SMOKE_TOKEN_URL: tokenUrl, SMOKE_CLIENT_ID: clientId, SMOKE_CLIENT_SECRET: clientSecret };
  const missing = Object.entries(needed).filter(([, value]) => value === undefined || value === "");
  if (missing.length > 0) {
    throw new WrongUsage(`${missing.map(([name]) => `${name}: is required with --sub`).join("\n")}\nusage: ${usage}`);
  }
  const scope = env.SMOKE_SCOPE || undefined;
  const client = z.safeParse(OAuthClient, { tokenUrl, clientId, clientSecret, ...(scope !== undefined && { scope }) });
  // No value is missing, so only the URL can be wrong.
  if (!client.success) throw new WrongUsage(`SMOKE_TOKEN_URL: must be a URL\nusage: ${usage}`);
  return client.data;
}

const Input = z.strictObject({ ...stackInput, sub: z.optional(textUpTo(255)) });

async function create({ sub, ...stack }: z.output<typeof Input>): Promise<number> {
  const stackName = chosenStack(stack) ?? stackNameOf(undefined);
  const client = sub === undefined ? {} : { client: { sub, credentials: credentialsIn(process.env) } };
  const { table, userPoolId, dynamoDb } = await deployedTable(stackName);
  const pool = userPoolId === undefined ? {} : { pool: { id: userPoolId, client: cognitoClient(dynamoDb) } };
  console.log(await createCanary({ stackName, table, parameters: openParameters(dynamoDb), ...pool, ...client }));
  return 0;
}

if (import.meta.main) {
  await runCommands(usage, { create: command(Input, create) });
}
