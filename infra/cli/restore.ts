/**
 * Implements `npm run restore -- COMMAND`, which restores the table or one company, prepares a table that AWS Backup has restored, and
 * checks or deletes a restored table.
 */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { rawDynamoClient } from "#shared/aws/dynamodb.ts";
import { systemClock } from "#shared/clock.ts";
import { describeTable } from "../local/engines/tables.ts";
import { CompanyId, must, TableName } from "./command/accepted.ts";
import { answerHelp, checked, commandNamed, optionsOf, runCommand, texts } from "./command/options.ts";
import { storesAt, unitsInput, unitsUsage } from "./company/rows.ts";
import type { CarryContext } from "./restore/carry-over.ts";
import { restoreCompany } from "./restore/company.ts";
import { deleteRestored } from "./restore/point-in-time.ts";
import { FAULTS_SHOWN, verifyAll } from "./restore/verify.ts";
import { prepareCopy, restoreWholeTable } from "./restore/whole-table.ts";
import { type ChosenStack, chosenStack, stackInput, stackUsage, type TableInUse, tableInUse } from "./table-in-use.ts";

const usage = `npm run restore -- table --to 2026-11-22T10:00:00Z --as NAME [--from TABLE]
    restores the service's table (or TABLE, which the service used earlier) at this second into the new table NAME;
    run it again to resume
npm run restore -- prepare --table NAME [--from TABLE]
    prepares a table that AWS Backup has restored for the service, as the first command does; run it again to resume;
    TABLE is another table that the service used earlier, or that replaces a deleted one
npm run restore -- verify --table NAME [--rebuild]
    checks the index and the deliveries of every company in a table; --rebuild builds a faulty index again
npm run restore -- company --company N --from TABLE
    makes the data of one suspended company equal to that in a restored table; run it again to resume
npm run restore -- delete --table NAME
    deletes a restored table; the table that the service uses is refused
${stackUsage}
${unitsUsage}
exit code 0: success, 1: faults, refused or any other error, 2: wrong usage`;

const shared = { ...stackInput, ...unitsInput };
/** DynamoDB restores a table only to whole seconds. */
const Second = z.pipe(
  z.iso.datetime({ offset: true, precision: 0, ...must("a time such as 2026-11-22T10:00:00Z") }),
  z.transform((text) => new Date(text)),
);
const inputs = {
  table: z.strictObject({ ...shared, to: Second, as: TableName, from: z.optional(TableName) }),
  prepare: z.strictObject({ ...shared, table: TableName, from: z.optional(TableName) }),
  delete: z.strictObject({ ...shared, table: TableName }),
  verify: z.strictObject({ ...shared, table: TableName, rebuild: z._default(z.boolean(), false) }),
  company: z.strictObject({ ...shared, from: TableName, company: CompanyId }),
} as const;
type Input<Name extends keyof typeof inputs> = z.output<(typeof inputs)[Name]>;

const report = (line: string): void => console.error(line);

async function table(inUse: TableInUse, input: Input<"table">): Promise<number> {
  const client = rawDynamoClient(inUse.dynamoDb);
  const carry = await carryOf(inUse, input, input.as);
  const request = { source: (carry.earlier ?? carry.live).tableName, at: input.to };
  const restored = await restoreWholeTable({ client, wait, progress: report }, request, carry);
  console.log(JSON.stringify({ table: input.as, ...restored, activeTableStream: restored.streamArn }, null, 2));
  return 0;
}

async function prepare(inUse: TableInUse, input: Input<"prepare">): Promise<number> {
  const client = rawDynamoClient(inUse.dynamoDb);
  const carry = await carryOf(inUse, input, input.table);
  const prepared = await prepareCopy({ client, wait, progress: report }, carry);
  console.log(JSON.stringify({ table: input.table, ...prepared, activeTableStream: prepared.streamArn }, null, 2));
  return 0;
}

/**
 * Opens the table that the service uses (the live table), the restored table, and the table of `--from` if it is another one. If the live
 * table has been deleted, the table of `--from` takes its place.
 */
async function carryOf(inUse: TableInUse, input: Input<"prepare" | "table">, target: string): Promise<CarryContext> {
  const used = z.string().parse(inUse.outputs.TableName);
  const storeOf = storesAt(inUse.dynamoDb, input);
  const from = input.from ?? used;
  const isGone = from !== used && (await describeTable(rawDynamoClient(inUse.dynamoDb), used)) === undefined;
  if (isGone) report(`the table ${used} is gone: ids, erasures and results of deliveries come from ${from} only`);
  return {
    live: storeOf(isGone ? from : used),
    ...(from !== used && !isGone && { earlier: storeOf(from) }),
    restored: storeOf(target),
    clock: systemClock,
    progress: report,
  };
}

async function verify(inUse: TableInUse, input: Input<"verify">): Promise<number> {
  const rows = storesAt(inUse.dynamoDb, input)(input.table);
  const line = (text: string): void => console.log(text);
  if ((await describeTable(rawDynamoClient(inUse.dynamoDb), input.table)) === undefined) {
    throw new Error(`there is no table ${input.table}`);
  }
  const context = { rows, clock: systemClock, wait, isRepairing: input.rebuild, report: line };
  return (await verifyAll(context)) === 0 ? 0 : 1;
}

async function remove(inUse: TableInUse, input: Input<"delete">): Promise<number> {
  const client = rawDynamoClient(inUse.dynamoDb);
  const used = z.string().parse(inUse.outputs.TableName);
  const isDeleted = await deleteRestored({ client, wait, progress: report }, input.table, used);
  console.log(`the table ${input.table} ${isDeleted ? "is deleted" : "does not exist"}`);
  return 0;
}

async function company(inUse: TableInUse, input: Input<"company">): Promise<number> {
  const storeOf = storesAt(inUse.dynamoDb, input);
  const live = storeOf(z.string().parse(inUse.outputs.TableName));
  const context = { live, restored: storeOf(input.from), clock: systemClock, progress: report };
  const { faults, ...counts } = await restoreCompany(context, input.company);
  const shown = faults.slice(0, FAULTS_SHOWN);
  console.log(JSON.stringify({ company: input.company, ...counts, allFaults: faults.length, faults: shown }));
  return faults.length === 0 ? 0 : 1;
}

function parsed<S extends z.ZodMiniType>(schema: S, args: readonly string[]): z.output<S> {
  const names = ["stage", "stack", "read-units", "write-units", "to", "as", "from", "table", "company"];
  const options = { ...texts(names), rebuild: { type: "boolean" as const } };
  return checked(schema, optionsOf(args, options, usage), usage);
}

/** Reads the arguments of a command before it looks for the table, so that wrong usage is reported even without a running service. */
const command =
  <S extends z.ZodMiniType<ChosenStack>>(schema: S, work: (inUse: TableInUse, input: z.output<S>) => Promise<number>) =>
  async (args: readonly string[]): Promise<number> => {
    const input = parsed(schema, args);
    return work(await tableInUse(chosenStack(input)), input);
  };

const commands: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  table: command(inputs.table, table),
  verify: command(inputs.verify, verify),
  prepare: command(inputs.prepare, prepare),
  delete: command(inputs.delete, remove),
  company: command(inputs.company, company),
};

async function main([name = "", ...args]: readonly string[]): Promise<number> {
  answerHelp([name], usage);
  return commandNamed([name], commands, usage)(args);
}

await runCommand(() => main(process.argv.slice(2)));
