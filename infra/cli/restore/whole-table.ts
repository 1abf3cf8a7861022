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
   * The users whose rights have changed since the restore point, as one line for each user. After the switch to the restored table, they
   * have their older rights again.
   */
  readonly returningRights: readonly string[];
  /**
   * The imports, exports and bulk jobs that were unfinished at the restore point, as one line for each job. After the switch to the
   * restored table, the service continues them.
   */
  readonly continuedJobs: readonly string[];
}

export async function restoreWholeTable(
  context: RestoreContext,
  request: RestoreRequest,
  carry: CarryContext,
): Promise<WholeRestore> {
  return prepare(context, request.source, await restoreTable(context, request), carry);
}

/**
 * Prepares a table that AWS Backup has restored, so that the service can use it.
 *
 * @throws RestoreRefused if `target` is the same table as `source`, does not exist, or is no copy of a table of the service
 */
export async function prepareCopy(
  context: RestoreContext,
  { source, target }: Omit<RestoreRequest, "at">,
  carry: CarryContext,
): Promise<WholeRestore> {
  if (target === source) throw new RestoreRefused(`the service uses the table ${target}: it is not prepared`);
  const [live, found] = [await describeTable(context.client, source), await describeTable(context.client, target)];
  if (found === undefined) throw new RestoreRefused(`there is no table ${target}`);
  const copy = await untilActive(context, target);
  if (live === undefined || shapeOf(live) !== shapeOf(copy)) {
    throw new RestoreRefused(`the table ${target} has other keys or indexes than ${source}`);
  }
  if ((await carry.restored.table.get(keys.idCounter())) === undefined) {
    throw new RestoreRefused(`the table ${target} is no copy of a table of this service: it has no counter of ids`);
  }
  return prepare(context, source, copy, carry);
}

/** Returns the keys and indexes of a table as a text. */
const shapeOf = ({ KeySchema, GlobalSecondaryIndexes = [] }: TableDescription): string =>
  JSON.stringify([KeySchema, ...GlobalSecondaryIndexes.map((index) => [index.IndexName, index.KeySchema])]);

async function prepare(
  context: RestoreContext,
  sourceName: string,
  target: TableDescription,
  carry: CarryContext,
): Promise<WholeRestore> {
  const source = await describeTable(context.client, sourceName);
  if (source === undefined) throw new Error(`the table ${sourceName} is gone`);
  await raiseIds(carry);
  const erasedAgain = await carryErasures(carry);
  const deliveries = await carryDeliveries(carry);
  const rights = await returningRights(carry);
  const jobs = await continuedJobs(carry);
  await applySettings(context, { source, target });
  const streamArn = await enableStream(context, { source, target });
  return { streamArn, erasedAgain, deliveries, returningRights: rights, continuedJobs: jobs };
}
