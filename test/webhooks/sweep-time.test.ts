/** Tests that the sweeper ends in time after the loss of all messages, however many deliveries wait, and that later runs continue. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { sweep, WORK_MS } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newPipeline, publish, START } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
/** Number of deliveries of another company at the beginning of each partition of the due index. */
const WAITING = 500;
const WRITE_MS = 100;

test("after the loss of the queue, a run begins no entry after its time, and a later run queues the rest when it is due", async () => {
  const at = await newPipeline(db, "prospect.created", 60);
  await publish(at);
  at.queue.length = 0;
  const { table } = at.context;
  const shards = keys.dueShards();
  const query: typeof table.query = async function* (spec) {
    if (spec.upTo === undefined && shards.includes(spec.pk)) {
      for (let i = 0; i < WAITING; i++) {
        const entry: Item = {
          ...keys.delivery(900_003, 1, `dlv_${spec.pk}_${i}`),
          dueShard: spec.pk,
          dueAt: iso(START),
        };
        yield entry;
      }
    }
    yield* table.query(spec);
  };
  let writes = 0;
  const write: typeof table.write = () => {
    writes++;
    at.clock += WRITE_MS;
    return Promise.reject(new ConditionFailed([{ index: 0, item: undefined }]));
  };
  expect(await sweep({ ...at.context, table: { ...table, query, write } }, { assume: "messages-lost" })).toBe(0);
  expect(writes).toBeGreaterThanOrEqual(WORK_MS / WRITE_MS);
  // The sweeper handles the entries of a partition in groups of ten. When its time is over, it may still finish a group in each partition.
  expect(writes).toBeLessThanOrEqual(WORK_MS / WRITE_MS + 20 * shards.length);

  at.clock = START + 61 * 60_000;
  expect(await sweep(at.context, { assume: "messages-kept" })).toBe(1);
});
