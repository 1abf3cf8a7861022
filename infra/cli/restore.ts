/** Implements `npm run restore`: restores the table or one company, and prepares, checks or deletes a restored table. */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { dynamoClient, rawDynamoClient } from "#shared/aws/dynamodb.ts";
import { systemClock } from "#shared/clock.ts";
import { describeTable } from "../local/engines/tables.ts";
import { CompanyId, must, TableName } from "./command/accepted.ts";
import { command, runCommands } from "./command/options.ts";
import { type RowStore, storesAt, unitsInput, unitsUsage } from "./company/rows.ts";
import type { CarryContext } from "./restore/carry-over.ts";
import { restoreCompany } from "./restore/company.ts";
import { deleteRestored, type RestoreContext } from "./restore/point-in-time.ts";
import { FAULTS_SHOWN, verifyAll } from "./restore/verify.ts";
import { prepareCopy, restoreWholeTable, type WholeRestore } from "./restore/whole-table.ts";
import { chosenStack, stackInput, stackUsage, tableInUse } from "./table-in-use.ts";

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

const Shared = z.object({ ...stackInput, ...unitsInput });
/** A time without fractions of a second, because DynamoDB restores a table only to whole seconds. */
const Second = z.pipe(
  z.iso.datetime({ offset: true, precision: 0, ...must("a time such as 2026-11-22T10:00:00Z") }),
  z.transform((text) => new Date(text)),
);
const inputs = {
  table: z.strictObject({ ...Shared.shape, to: Second, as: TableName, from: z.optional(TableName) }),
  prepare: z.strictObject({ ...Shared.shape, table: TableName, from: z.optional(TableName) }),
  delete: z.strictObject({ ...Shared.shape, table: TableName }),
  verify: z.strictObject({ ...Shared.shape, table: TableName, rebuild: z._default(z.boolean(), false) }),
  company: z.strictObject({ ...Shared.shape, from: TableName, company: CompanyId }),
} as const;

interface Deployment extends RestoreContext {
  /** The name of the table that the service uses. */
  readonly used: string;
  readonly storeOf: (tableName: string) => RowStore;
}

const report = (line: string): void => console.error(line);

function printed(table: string, restored: WholeRestore): number {
  console.log(JSON.stringify({ table, ...restored, activeTableStream: restored.streamArn }, null, 2));
  return 0;
}

/**
 * Opens the table that the service uses (the live table), the restored table, and the table of `--from` if it is another one. If the live
 * table has been deleted, the table of `--from` takes its place.
 */
async function carryOf({ client, used, storeOf }: Deployment, target: string, from = used): Promise<CarryContext> {
  const isGone = from !== used && (await describeTable(client, used)) === undefined;
  if (isGone) report(`the table ${used} is gone: ids, erasures and results of deliveries come from ${from} only`);
  return {
    live: storeOf(isGone ? from : used),
    ...(from !== used && !isGone && { earlier: storeOf(from) }),
    restored: storeOf(target),
    clock: systemClock,
    progress: report,
  };
}

const onDeployment = <S extends z.ZodMiniObject & z.ZodMiniType<z.output<typeof Shared>>>(
  schema: S,
  work: (deployment: Deployment, input: z.output<S>) => Promise<number>,
) =>
  command(schema, async (input) => {
    const { dynamoDb, outputs } = await tableInUse(chosenStack(input));
    const storeOf = storesAt(dynamoClient(dynamoDb), input);
    return work({ client: rawDynamoClient(dynamoDb), wait, progress: report, used: outputs.TableName, storeOf }, input);
  });

await runCommands(usage, {
  table: onDeployment(inputs.table, async (deployment, { as, to: at, from }) => {
    const carry = await carryOf(deployment, as, from);
    const request = { source: (carry.earlier ?? carry.live).tableName, at };
    return printed(as, await restoreWholeTable(deployment, request, carry));
  }),
  prepare: onDeployment(inputs.prepare, async (deployment, { table, from }) =>
    printed(table, await prepareCopy(deployment, await carryOf(deployment, table, from))),
  ),
  verify: onDeployment(inputs.verify, async ({ client, storeOf }, { table, rebuild }) => {
    if ((await describeTable(client, table)) === undefined) throw new Error(`there is no table ${table}`);
    const line = (text: string): void => console.log(text);
    const context = { rows: storeOf(table), clock: systemClock, wait, isRepairing: rebuild, report: line };
    return (await verifyAll(context)) === 0 ? 0 : 1;
  }),
  delete: onDeployment(inputs.delete, async (deployment, { table }) => {
    const isDeleted = await deleteRestored(deployment, table, deployment.used);
    console.log(`the table ${table} ${isDeleted ? "is deleted" : "does not exist"}`);
    return 0;
  }),
  company: onDeployment(inputs.company, async ({ used, storeOf }, { company, from }) => {
    const context = { live: storeOf(used), restored: storeOf(from), clock: systemClock, progress: report };
    const { faults, ...counts } = await restoreCompany(context, company);
    console.log(
      JSON.stringify({ company, ...counts, allFaults: faults.length, faults: faults.slice(0, FAULTS_SHOWN) }),
    );
    return faults.length === 0 ? 0 : 1;
  }),
});
