/** Runs in a worker thread with a small heap. It runs the sweeper on a table with `count` overdue deliveries of one company. */
import { parentPort, workerData } from "node:worker_threads";
import * as z from "zod/mini";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { tableAt } from "../harness/faulty-dynamodb.ts";
import { quietContext, START } from "./delivery-pipeline.ts";
import { withOverdue } from "./endless-due-index.ts";

const { endpoint, companyId, other, count } = z.parse(
  z.object({ endpoint: z.string(), companyId: z.int(), other: z.int(), count: z.int() }),
  workerData,
);
const table = tableAt(endpoint);
let writes = 0;
const write: Table["write"] = async (entry) => {
  writes++;
  // The simulated deliveries have no rows, so the sweeper's conditional write to them must fail as in DynamoDB.
  if ("update" in entry && entry.update.pk.startsWith(`C#${companyId}#`)) {
    throw new ConditionFailed([{ index: 0, item: undefined }]);
  }
  return table.write(entry);
};
const found: number[] = [];
const context = quietContext(
  { ...withOverdue(table, companyId, count), write },
  { now: () => START + 600_000 },
  async (entries) => void found.push(...entries.map(({ message }) => message.companyId)),
);
const queued = await sweep(context, { assume: "messages-kept" });
parentPort?.postMessage({ queued, writes, isFound: found.includes(other) });
