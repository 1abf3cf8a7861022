/**
 * Runs the sweeper in a worker thread with a small heap, on a table whose due index also contains `count` overdue deliveries. These have no
 * rows, so each conditional write to them fails.
 */
import { parentPort, workerData } from "node:worker_threads";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { tableAt } from "../harness/faulty-dynamodb.ts";
import { quietContext, START } from "./fixtures.ts";

const { endpoint, companyId, other, count } = z.parse(
  z.object({ endpoint: z.string(), companyId: z.int(), other: z.int(), count: z.int() }),
  workerData,
);
const table = tableAt(endpoint);
const shards = keys.dueShards();
const query: Table["query"] = async function* (spec) {
  const shard = spec.index === undefined ? -1 : shards.indexOf(spec.pk);
  for (let i = shard; shard !== -1 && i < count; i += shards.length) {
    const id = `dlv_${String(i).padStart(29, "0")}`;
    yield { ...keys.delivery(companyId, 1, id), dueShard: spec.pk, dueAt: iso(START - 86_400_000 + i) };
  }
  yield* table.query(spec);
};
let writes = 0;
const write: Table["write"] = async (entry) => {
  writes++;
  if ("update" in entry && entry.update.pk.startsWith(`C#${companyId}#`)) {
    throw new ConditionFailed([{ index: 0, item: undefined }]);
  }
  return table.write(entry);
};
const found: number[] = [];
const context = quietContext(
  { ...table, query, write },
  { now: () => START + 600_000 },
  async (entries) => void found.push(...entries.map(({ message }) => message.companyId)),
);
const queued = await sweep(context, { assume: "messages-kept" });
parentPort?.postMessage({ queued, writes, isFound: found.includes(other) });
