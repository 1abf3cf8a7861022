/** Restores the whole table into a new one, or prepares a table that AWS Backup has restored. After an interruption, it can be repeated. */
import type { TableDescription } from "@aws-sdk/client-dynamodb";
import * as keys from "#shared/db/keys.ts";
import { describeTable } from "../../local/engines/tables.ts";
import {
  type CarriedDeliveries,
  type CarryContext,
  carryDeliveries,
  carryErasures,
  continuedJobs,
  raiseIds,
} from "./carry-over.ts";
import { type RestoreContext, type RestoreRequest, restoreTable, untilActive } from "./point-in-time.ts";
import { returningRights } from "./rights.ts";
import { applySettings, enableStream } from "./settings.ts";

export interface WholeRestore {
  readonly streamArn: string;
  readonly erasedAgain: readonly number[];
  readonly deliveries: CarriedDeliveries;
  /** A line for each user or key (at most 100) that gets older rights back by the switch. */
  readonly returningRights: readonly string[];
  /** A line for each job (at most 100) that was unfinished at the restore point, and continues after the switch. */
  readonly continuedJobs: readonly string[];
}

export async function restoreWholeTable(
  context: RestoreContext,
  request: Omit<RestoreRequest, "target">,
  carry: CarryContext,
): Promise<WholeRestore> {
  assertUnused(carry);
  return prepare(context, await restoreTable(context, { ...request, target: carry.restored.tableName }), carry);
}

/** Prepares a table that AWS Backup has restored. Throws if the service uses this table, or if it is no copy of a table of the service. */
export async function prepareCopy(context: RestoreContext, carry: CarryContext): Promise<WholeRestore> {
  assertUnused(carry);
  const [source, target] = [carry.live.tableName, carry.restored.tableName];
  const [live, found] = [await describeTable(context.client, source), await describeTable(context.client, target)];
  if (found === undefined) throw new Error(`there is no table ${target}`);
  const copy = await untilActive(context, target);
  if (live === undefined || shapeOf(live) !== shapeOf(copy)) {
    throw new Error(`the table ${target} has other keys or indexes than ${source}`);
  }
  if ((await carry.restored.table.get(keys.idCounter())) === undefined) {
    throw new Error(`the table ${target} is no copy of a table of this service: it has no counter of ids`);
  }
  return prepare(context, copy, carry);
}

function assertUnused({ live, restored: { tableName } }: CarryContext): void {
  if (tableName === live.tableName) throw new Error(`the service uses the table ${tableName}: name another one`);
}

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
