/**
 * Implements `npm run company -- COMMAND`, which creates, suspends, resumes, exports, deletes and checks a company. The company is in a
 * deployed stack or in the local service.
 */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { s3Client } from "#shared/aws/s3.ts";
import { iso, systemClock } from "#shared/clock.ts";
import { chosenStack, stackUsage } from "./chosen-stack.ts";
import { type ErasureContext, eraseCompany, erasureOf, remainsOf } from "./company/erasure.ts";
import { exportCompany } from "./company/export.ts";
import { Pace } from "./company/pace.ts";
import { poolAt } from "./company/pool.ts";
import { READ_UNITS, WRITE_UNITS } from "./company/rows.ts";
import { CommandRefused, resume, suspend } from "./company/suspension.ts";
import { createCommand } from "./create-company.ts";
import { answerHelp, checked, optionsOf, runCommand, texts, unknownCommand } from "./options.ts";
import { type TableInUse, tableInUse } from "./table-in-use.ts";

const usage = `npm run company -- create --name NAME --owner EMAIL [--first-name TEXT] [--last-name TEXT]
    [--sub SUBJECT]  the owner's subject at an external identity provider
npm run company -- suspend|resume --company N
    users of a suspended company cannot sign in
npm run company -- export --company N
    writes all rows as NDJSON and copies all files, to the folder company-exports of the bucket; run it again to resume
npm run company -- delete --company N --confirm "NAME"
    erases a suspended company; run it again to resume
npm run company -- check --company N
    counts what is left of a company; exit code 1 if anything is, or if no company and no erasure has this id
${stackUsage}
    [--read-units N, --write-units N]   capacity units a second (default ${READ_UNITS}, ${WRITE_UNITS})
exit code 0: success, 1: something is left of a company, refused or any other error, 2: wrong usage`;

const CompanyId = z
  .string("must be the id of a company")
  .check(z.regex(/^[1-9]\d{0,15}$/, "must be the id of a company"));
const Units = z.pipe(
  z.string().check(z.regex(/^[1-9]\d{0,5}$/, "must be a number from 1 to 999999")),
  z.transform(Number),
);
const Input = z.object({
  company: z.pipe(CompanyId, z.transform(Number)),
  confirm: z._default(z.string(), ""),
  stage: z.optional(z.string()),
  stack: z.optional(z.string()),
  "read-units": z._default(Units, READ_UNITS),
  "write-units": z._default(Units, WRITE_UNITS),
});
type Input = z.output<typeof Input>;

const Outputs = z.object({ TableName: z.string(), BucketName: z.string(), S3Endpoint: z.optional(z.string()) });

function contextOf({ dynamoDb, outputs, table, userPoolId }: TableInUse, input: Input): ErasureContext {
  const { TableName, BucketName, S3Endpoint } = Outputs.parse(outputs);
  const { endpoint: _, ...settings } = dynamoDb;
  return {
    rows: {
      client: dynamoClient(dynamoDb),
      tableName: TableName,
      table,
      reads: new Pace(input["read-units"]),
      writes: new Pace(input["write-units"]),
    },
    files: {
      s3: s3Client({ ...settings, ...(S3Endpoint !== undefined && { endpoint: S3Endpoint }) }),
      bucket: BucketName,
    },
    pool: userPoolId === undefined ? undefined : poolAt(userPoolId, cognitoClient(settings)),
    clock: systemClock,
    wait,
    progress: (line) => console.error(line),
  };
}

/** The function of a command. It prints a report and resolves with the exit code. */
type Command = (context: ErasureContext, input: Input) => Promise<number>;

const commands: Readonly<Record<string, Command>> = {
  suspend: async ({ rows: { table }, clock }, { company }) => {
    console.log(`company ${company} is suspended: ${await suspend({ table, clock }, company)} users cannot sign in`);
    return 0;
  },
  resume: async ({ rows: { table }, clock }, { company }) => {
    console.log(`company ${company} is active: ${await resume({ table, clock }, company)} users can sign in`);
    return 0;
  },
  export: async (context, { company }) => {
    const { folder, manifest } = await exportCompany(context, company);
    const { parts, counts, leftOut } = manifest;
    const report = { manifest: `s3://${context.files.bucket}/${folder}manifest.json`, parts: parts.length };
    console.log(JSON.stringify({ company, ...report, counts, leftOut }, null, 2));
    return 0;
  },
  delete: async (context, { company, confirm }) => {
    const erasure = await eraseCompany(context, company, confirm);
    console.log(JSON.stringify({ ...erasure, remainsUntil: remainsUntil(erasure.erasedAt) }, null, 2));
    return check(context, company);
  },
  check: (context, { company }) => check(context, company),
};

/**
 * Counts the rows and files that are left of a company. Throws CommandRefused if there are none and no erasure of this company is recorded.
 * Otherwise a mistyped id would look like a completed erasure.
 */
async function check(context: ErasureContext, company: number): Promise<number> {
  const { rows, files } = await remainsOf(context, company);
  const erasure = await erasureOf(context.rows.table, company);
  const isEmpty = files === 0 && Object.keys(rows).length === 0;
  if (isEmpty && erasure === undefined) {
    throw new CommandRefused(`there is no company ${company}, and no erasure of it is recorded: check the id`);
  }
  console.log(JSON.stringify({ company, erasedAt: erasure?.erasedAt ?? null, rowsLeft: rows, filesLeft: files }));
  return isEmpty ? 0 : 1;
}

const DAY_MS = 86_400_000;

/**
 * Returns for each kind of copy of the erased data when the copy expires. The retention of backups depends on the deployment's settings.
 */
function remainsUntil(erasedAt: string): Record<string, string> {
  const after = (days: number): string => iso(Date.parse(erasedAt) + days * DAY_MS);
  return {
    "point-in-time recovery of the table": after(35),
    "stream of the table": after(1),
    "parts of unfinished uploads": after(1),
    "dead-letter queues": after(14),
    "memory of running functions": after(1),
    "log lines, which have ids and no names": after(90),
    "AWS Backup":
      "until the recovery points from before the erasure expire: the settings backupDailyDays and backupMonthlyDays",
  };
}

function readInput(args: readonly string[]): Input {
  const names = ["company", "confirm", "stage", "stack", "read-units", "write-units"];
  return checked(Input, optionsOf(args, texts(names), usage), usage);
}

async function main([name = "", ...args]: readonly string[]): Promise<number> {
  answerHelp([name], usage);
  if (name === "create") {
    await createCommand(args, usage);
    return 0;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw unknownCommand([name], usage);
  const input = readInput(args);
  return command(contextOf(await tableInUse(chosenStack(input)), input), input);
}

await runCommand(() => main(process.argv.slice(2)));
