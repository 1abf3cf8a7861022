/** Restores the table as it was at an earlier time into a new table, and deletes such tables. */
import {
  DeleteTableCommand,
  DescribeContinuousBackupsCommand,
  type DynamoDBClient,
  RestoreTableToPointInTimeCommand,
  type TableDescription,
  UpdateTableCommand,
} from "@aws-sdk/client-dynamodb";
import { iso } from "#shared/clock.ts";
import { describeTable } from "../../local/engines/tables.ts";

export interface RestoreContext {
  readonly client: DynamoDBClient;
  readonly wait: (ms: number) => Promise<unknown>;
  readonly progress?: (line: string) => void;
}

export interface RestoreRequest {
  readonly source: string;
  readonly target: string;
  /** A whole second, because DynamoDB restores a table only to whole seconds. */
  readonly at: Date;
}

const POLL_MS = 10_000;

/** Restores the table, and waits for the end. A repeated call with the same arguments waits for the same restore. */
export async function restoreTable(context: RestoreContext, request: RestoreRequest): Promise<TableDescription> {
  const { source, target, at } = request;
  const existing = await describeTable(context.client, target);
  if (existing === undefined) {
    await assertRestorable(context, request);
    const command = new RestoreTableToPointInTimeCommand({
      SourceTableName: source,
      TargetTableName: target,
      RestoreDateTime: at,
    });
    await context.client.send(command);
    context.progress?.(`restores ${source} at ${iso(at.getTime())} into ${target}`);
  } else assertSameRestore(existing, request);
  return untilActive(context, target);
}

function assertSameRestore({ RestoreSummary }: TableDescription, { source, target, at }: RestoreRequest): void {
  const { SourceTableArn = "", RestoreDateTime } = RestoreSummary ?? {};
  if (!SourceTableArn.endsWith(`:table/${source}`) || RestoreDateTime?.getTime() !== at.getTime()) {
    throw new Error(`the table ${target} exists and is no restore of ${source} at ${iso(at.getTime())}`);
  }
}

/** The errors of the local DynamoDB server for an operation that it does not know. */
const UNKNOWN_OPERATION = /^Unknown(?:Operation|Error)/;

async function assertRestorable({ client }: RestoreContext, { source, at }: RestoreRequest): Promise<void> {
  const command = new DescribeContinuousBackupsCommand({ TableName: source });
  const { ContinuousBackupsDescription } = await client.send(command).catch((error: unknown) => {
    if (!(error instanceof Error && UNKNOWN_OPERATION.test(error.name))) throw error;
    throw new Error(`the server of the table ${source} has no point-in-time recovery`);
  });
  const recovery = ContinuousBackupsDescription?.PointInTimeRecoveryDescription;
  const { EarliestRestorableDateTime: first, LatestRestorableDateTime: last } = recovery ?? {};
  if (recovery?.PointInTimeRecoveryStatus !== "ENABLED" || first === undefined || last === undefined) {
    throw new Error(`the table ${source} has no point-in-time recovery`);
  }
  if (at < first || at > last) {
    const range = `${iso(first.getTime())} to ${iso(last.getTime())}`;
    throw new Error(`${source} can be restored at any second from ${range}`);
  }
}

/** Waits until the table and its indexes are active. A restore takes minutes to hours. */
export async function untilActive(context: RestoreContext, name: string): Promise<TableDescription> {
  for (;;) {
    const table = await describeTable(context.client, name);
    if (table === undefined) throw new Error(`the table ${name} is gone`);
    const states = [table.TableStatus, ...(table.GlobalSecondaryIndexes ?? []).map(({ IndexStatus }) => IndexStatus)];
    const isBusy = states.some((state) => state !== undefined && state !== "ACTIVE");
    if (!isBusy && table.RestoreSummary?.RestoreInProgress !== true) return table;
    context.progress?.(`${name} is ${table.TableStatus}`);
    await context.wait(POLL_MS);
  }
}

/** Deletes the table `name`, or returns false if there is none. Throws if it is the service's table `used`, or if no restore created it. */
export async function deleteRestored(context: RestoreContext, name: string, used: string): Promise<boolean> {
  const { client } = context;
  if (name === used) throw new Error(`the service uses the table ${name}: it is not deleted`);
  const found = await describeTable(client, name);
  if (found === undefined) return false;
  if (found.TableStatus !== "DELETING") {
    if (found.RestoreSummary === undefined) {
      throw new Error(`the table ${name} does not come from a restore: it is not deleted`);
    }
    const { DeletionProtectionEnabled } = await untilActive(context, name);
    if (DeletionProtectionEnabled === true) {
      await client.send(new UpdateTableCommand({ TableName: name, DeletionProtectionEnabled: false }));
      await untilActive(context, name);
    }
    await client.send(new DeleteTableCommand({ TableName: name }));
  }
  while ((await describeTable(client, name)) !== undefined) {
    context.progress?.(`${name} is being deleted`);
    await context.wait(POLL_MS);
  }
  return true;
}
