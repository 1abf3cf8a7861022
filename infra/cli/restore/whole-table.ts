/** Restores the whole table into a new table that the service can use. If the command is killed, it can be run again. */
import { type CarriedDeliveries, type CarryContext, carryDeliveries, carryErasures, raiseIds } from "./carry-over.ts";
import { continuedJobs } from "./jobs.ts";
import { describeTable, type RestoreContext, type RestoreRequest, restoreTable } from "./point-in-time.ts";
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
  const target = await restoreTable(context, request);
  const source = await describeTable(context.client, request.source);
  if (source === undefined) throw new Error(`the table ${request.source} is gone`);
  await raiseIds(carry);
  const erasedAgain = await carryErasures(carry);
  const deliveries = await carryDeliveries(carry);
  const rights = await returningRights(carry);
  const jobs = await continuedJobs(carry);
  await applySettings(context, { source, target });
  const streamArn = await enableStream(context, { source, target });
  return { streamArn, erasedAgain, deliveries, returningRights: rights, continuedJobs: jobs };
}
