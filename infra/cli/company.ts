/** Implements `npm run company`: creates, suspends, resumes, exports, deletes and checks companies of a stack or the local service. */
import { setTimeout as wait } from "node:timers/promises";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import * as z from "zod/mini";
import { directoryOnly, type IdentityProvider, userPool } from "#shared/auth/identity-provider.ts";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { dynamoClient, rawDynamoClient } from "#shared/aws/dynamodb.ts";
import { s3Client } from "#shared/aws/s3.ts";
import { systemClock } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import * as limits from "#shared/limits.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { Email, text } from "#shared/schema.ts";
import { describeTable } from "../local/engines/tables.ts";
import { type DeployedRetention, readRetention } from "../settings/retention.ts";
import { CompanyId, must, TableName, textUpTo } from "./command/accepted.ts";
import { command, runCommands } from "./command/options.ts";
import { type ErasureContext, eraseCompany, erasureOf, remainsOf, remainsUntil } from "./company/erasure.ts";
import { exportCompany } from "./company/export.ts";
import { type RowStore, storesAt, unitsInput, unitsUsage } from "./company/rows.ts";
import { resume, suspend } from "./company/suspension.ts";
import { restoredFrom } from "./restore/found-tables.ts";
import { chosenStack, deployedTable, stackInput, stackUsage, type TableInUse, tableInUse } from "./table-in-use.ts";

const usage = `npm run company -- create --name NAME --owner EMAIL [--first-name TEXT] [--last-name TEXT]
    creates a company with its owner
    [--sub SUBJECT]  the owner's subject at an external identity provider
npm run company -- suspend|resume --company N
    suspends or resumes a company; the API refuses the requests of users of a suspended company, at the latest after a minute
npm run company -- export --company N
    writes all rows as NDJSON and copies all files, to the folder company-exports of the bucket; run it again to resume
npm run company -- delete --company N --confirm "NAME" [--also TABLE]
    erases a suspended company; run it again to resume
    --also TABLE also erases it in this restored table
npm run company -- check --company N
    counts what is left of a company in all tables; exit code 1 if anything is, or if no company and no erasure has this id
${stackUsage}
${unitsUsage}
exit code 0: success, 1: something is left of a company, refused or any other error, 2: wrong usage`;

const Input = z.strictObject({
  ...stackInput,
  ...unitsInput,
  company: CompanyId,
  confirm: z._default(z.string(), ""),
  also: z.optional(TableName),
});
type Input = z.output<typeof Input>;

const Outputs = z.object({
  TableName: z.string(),
  OwnTableName: z.string(),
  Retention: z.string(),
  BucketName: z.string(),
  S3Endpoint: z.optional(z.string()),
});

interface Context extends ErasureContext {
  readonly retention: DeployedRetention;
  /** Finds tables that a restore made from the service's table or `others`, directly or through another table. */
  readonly findRestored: () => Promise<readonly RowStore[]>;
}

async function contextOf({ dynamoDb, outputs, userPoolId }: TableInUse, input: Input): Promise<Context> {
  const { TableName, OwnTableName, BucketName, S3Endpoint, Retention } = Outputs.parse(outputs);
  const { endpoint: _, ...settings } = dynamoDb;
  const storeOf = storesAt(dynamoClient(dynamoDb), input);
  const control = rawDynamoClient(dynamoDb);
  if (input.also !== undefined) await assertRestored(control, input.also);
  const others = new Set([OwnTableName, ...(input.also === undefined ? [] : [input.also])]);
  others.delete(TableName);
  return {
    rows: storeOf(TableName),
    others: [...others].map(storeOf),
    findRestored: async () => {
      const { restored, unread } = await restoredFrom(control, [TableName, ...others]);
      if (unread.length > 0) console.error(`not examined, because you have no right to it: ${unread.join(", ")}`);
      return restored.map(storeOf);
    },
    files: {
      s3: s3Client({ ...settings, ...(S3Endpoint !== undefined && { endpoint: S3Endpoint }) }),
      bucket: BucketName,
    },
    pool: userPoolId === undefined ? undefined : { id: userPoolId, client: cognitoClient(settings) },
    clock: systemClock,
    wait,
    progress: (line) => console.error(line),
    retention: readRetention(Retention),
  };
}

/** Throws if the table does not come from a restore. Otherwise a mistyped name could erase rows of another deployment. */
async function assertRestored(client: DynamoDBClient, name: string): Promise<void> {
  const found = await describeTable(client, name);
  if (found?.RestoreSummary !== undefined) return;
  throw new Error(found === undefined ? `there is no table ${name}` : `the table ${name} does not come from a restore`);
}

/** Returns a command on one company. `work` prints a report and resolves with the exit code. */
const onCompany = (work: (context: Context, input: Input) => Promise<number>) =>
  command(Input, async (input) => work(await contextOf(await tableInUse(chosenStack(input)), input), input));

/** Prints what is left of a company. Throws if nothing is left and no erasure is recorded, because the id may be mistyped. */
async function check(context: Context, company: number): Promise<number> {
  const restored = await context.findRestored();
  const all = { ...context, others: [...context.others, ...restored] };
  const { rows, others, files } = await remainsOf(all, company);
  const erasure = await erasureOf(context.rows.table, company);
  const isIn = (counts: Readonly<Record<string, number>>): boolean => Object.keys(counts).length > 0;
  const isEmpty = files === 0 && ![rows, ...Object.values(others)].some(isIn);
  if (isEmpty && erasure === undefined) {
    throw new Error(`there is no company ${company}, and no erasure of it is recorded: check the id`);
  }
  for (const { tableName } of restored.filter(({ tableName }) => isIn(others[tableName] ?? {}))) {
    console.error(`the restored table ${tableName} contains company ${company}: delete the table, or use --also`);
  }
  const left = { rowsLeft: rows, otherTables: others, filesLeft: files };
  console.log(JSON.stringify({ company, erasedAt: erasure?.erasedAt ?? null, ...left }));
  return isEmpty ? 0 : 1;
}

const NewCompany = z.strictObject({
  ...stackInput,
  name: z.pipe(textUpTo(limits.name), text(limits.name)),
  owner: z.string().check(z.refine((email) => z.safeParse(Email, email).success, must("an e-mail address"))),
  "first-name": z._default(text(limits.name), ""),
  "last-name": z._default(text(limits.name), ""),
  sub: z.optional(textUpTo(255)),
});

function identitiesOf({ isLocal, userPoolId, dynamoDb }: TableInUse): IdentityProvider {
  if (isLocal) return directoryOnly;
  if (userPoolId === undefined)
    throw new Error("this stack uses an external identity provider: name the owner's subject there by --sub");
  return userPool(userPoolId, cognitoClient(dynamoDb));
}

async function create(input: z.output<typeof NewCompany>): Promise<number> {
  const { name, owner: email, sub } = input;
  // With `--sub`, the target is never the local service, because that uses no external identity provider.
  const target = await (sub === undefined ? tableInUse : deployedTable)(chosenStack(input));
  const identity = sub === undefined ? await identitiesOf(target).invite(email) : { sub };
  const owner = { email, firstName: input["first-name"], lastName: input["last-name"], ...identity };
  const made = await createCompany(contextOn(target.table), { name, owner });
  console.log(`company ${made.company.id} ${name} with owner ${made.owner.id} ${email} on ${target.label}`);
  return 0;
}

await runCommands(usage, {
  create: command(NewCompany, create),
  suspend: onCompany(async ({ rows: { table }, clock }, { company }) => {
    const users = await suspend({ table, clock }, company);
    console.log(`company ${company} is suspended: the API refuses requests of its ${users} users`);
    return 0;
  }),
  resume: onCompany(async ({ rows: { table }, clock }, { company }) => {
    const users = await resume({ table, clock }, company);
    console.log(`company ${company} is active: the API accepts requests of its ${users} users`);
    return 0;
  }),
  export: onCompany(async (context, { company }) => {
    const { folder, manifest } = await exportCompany(context, company);
    const { parts, counts, leftOut, damaged } = manifest;
    const report = { manifest: `s3://${context.files.bucket}/${folder}manifest.json`, parts: parts.length };
    console.log(JSON.stringify({ company, ...report, counts, leftOut, damaged }, null, 2));
    return 0;
  }),
  delete: onCompany(async (context, { company, confirm }) => {
    const erasure = await eraseCompany(context, company, confirm);
    const report = { ...erasure, remainsUntil: remainsUntil(erasure.erasedAt, context.retention) };
    console.log(JSON.stringify(report, null, 2));
    return check(context, company);
  }),
  check: onCompany((context, { company }) => check(context, company)),
});
