/**
 * Restores the whole table into a new table that the service can use, or prepares a table that AWS Backup has restored. If the command is
 * killed, it can be run again.
 */
import type { TableDescription } from "@aws-sdk/client-dynamodb";
import * as keys from "#shared/db/keys.ts";
import { type CarriedDeliveries, type CarryContext, carryDeliveries, carryErasures, raiseIds } from "./carry-over.ts";
import { continuedJobs } from "./jobs.ts";
import {
  describeTable,
  type RestoreContext,
  RestoreRefused,
  type RestoreRequest,
  restoreTable,
  untilActive,
} from "./point-in-time.ts";
import { returningRights } from "./rights.ts";
import { applySettings, enableStream } from "./settings.ts";

export interface WholeRestore {
  readonly streamArn: string;
  readonly erasedAgain: readonly number[];
  readonly deliveries: CarriedDeliveries;
  /**
   * One line for each user (at most 100) whose rights have changed since the restore point. After the switch to the restored table, these
   * users have their older rights again.
   */
  readonly returningRights: readonly string[];
  /**
   * One line for each import, export or bulk job (at most 100) that was unfinished at the restore point. After the switch to the restored
   * table, the service continues these jobs.
   */
  readonly continuedJobs: readonly string[];
}

/**
 * Restores the table `request.source` into the table `carry.restored`.
 *
 * @throws RestoreRefused if the service uses the table `carry.restored`, or if the restore is not possible
 */
export async function restoreWholeTable(
  context: RestoreContext,
  request: Omit<RestoreRequest, "target">,
  carry: CarryContext,
): Promise<WholeRestore> {
  assertUnused(carry);
  return prepare(context, await restoreTable(context, { ...request, target: carry.restored.tableName }), carry);
}

/**
 * Prepares the table `carry.restored`, which AWS Backup has restored, so that the service can use it.
 *
 * @throws RestoreRefused if the service uses the table, if it does not exist, or if it is no copy of a table of the service
 */
export async function prepareCopy(context: RestoreContext, carry: CarryContext): Promise<WholeRestore> {
  assertUnused(carry);
  const [source, target] = [carry.live.tableName, carry.restored.tableName];
  const [live, found] = [await describeTable(context.client, source), await describeTable(context.client, target)];
  if (found === undefined) throw new RestoreRefused(`there is no table ${target}`);
  const copy = await untilActive(context, target);
  if (live === undefined || shapeOf(live) !== shapeOf(copy)) {
    throw new RestoreRefused(`the table ${target} has other keys or indexes than ${source}`);
  }
  if ((await carry.restored.table.get(keys.idCounter())) === undefined) {
    throw new RestoreRefused(`the table ${target} is no copy of a table of this service: it has no counter of ids`);
  }
  return prepare(context, copy, carry);
}

function assertUnused({ live, restored: { tableName } }: CarryContext): void {
  if (tableName === live.tableName)
    throw new RestoreRefused(`the service uses the table ${tableName}: name another one`);
}

/** Returns the keys and indexes of a table as a string, so that the schemas of two tables can be compared. */
const shapeOf = ({ KeySchema, GlobalSecondaryIndexes = [] }: TableDescription): string =>
  JSON.stringify([KeySchema, ...GlobalSecondaryIndexes.map((index) => [index.IndexName, index.KeySchema])]);

async function prepare(context: RestoreContext, target: TableDescription, carry: CarryContext): Promise<WholeRestore> {
  const source = await describeTable(context.client, carry.live.tableName);
  if (source === undefined) throw new Error(`the table ${carry.live.tableName} is gone`);
  await raiseIds(carry);
  const erasedAgain = await carryErasures(carry);
  const deliveries = await carryDeliveries(carry);
  const rights = await returningRights(carry);
  const jobs = await continuedJobs(carry);
  await applySettings(context, { source, target });
  const streamArn = await enableStream(context, { source, target });
  return { streamArn, erasedAgain, deliveries, returningRights: rights, continuedJobs: jobs };
}
