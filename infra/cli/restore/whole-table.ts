/** Restores the whole table into a new one that the service can use. Each step can be repeated after the command was killed. */
import { type CarriedDeliveries, type CarryContext, carryDeliveries, carryErasures, raiseIds } from "./carry-over.ts";
import { continuedJobs } from "./jobs.ts";
import { describeTable, type RestoreContext, type RestoreRequest, restoreTable } from "./point-in-time.ts";
import { returningRights } from "./rights.ts";
import { applySettings, enableStream } from "./settings.ts";

export interface WholeRestore {
  readonly streamArn: string;
  readonly erasedAgain: readonly number[];
  readonly deliveries: CarriedDeliveries;
  /** The users whose rights were changed after the restore point. After the switch, they have their older rights again. */
  readonly returningRights: readonly string[];
  /** The imports, exports and bulk jobs that were unfinished at the restore point. After the switch, the service continues them. */
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
