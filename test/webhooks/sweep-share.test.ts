/** Tests that the work of one run of the sweeper is bounded and fair to each company, and that later runs handle the remaining entries. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { fairStrides, sweep, WORK_MS } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newPipeline, publish, START } from "./delivery-pipeline.ts";

const CAPACITY = 1_000;
const backlogs = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 50_000 })), {
  selector: ([companyId]) => companyId,
  minLength: 1,
  maxLength: 200,
});

const takenOf = (count: number, stride: number, minute: number): number =>
  Array.from({ length: count }, (_, place) => place).filter((place) => (place + minute) % stride === 0).length;

test("one run of the sweeper reads at most its capacity plus one entry of each company, and a fair share of every company", () => {
  fc.assert(
    fc.property(backlogs, fc.nat(1_000), (companies, minute) => {
      const strides = fairStrides(new Map(companies), CAPACITY);
      const part = CAPACITY / companies.length;
      let sum = 0;
      for (const [companyId, count] of companies) {
        const taken = takenOf(count, strides(companyId), minute);
        sum += taken;
        if (count <= part) expect(taken).toBe(count);
        else expect(taken).toBeGreaterThanOrEqual(Math.floor(part / 2));
      }
      expect(sum).toBeLessThanOrEqual(CAPACITY + companies.length);
    }),
    { numRuns: 50 },
  );
});

test("a large backlog does not delay another company, whose few entries are all read in the first run", () => {
  const strides = fairStrides(
    new Map([
      [1, 1_000_000],
      [2, 3],
    ]),
    CAPACITY,
  );
  expect(strides(2)).toBe(1);
  expect(strides(1)).toBeGreaterThan(900);
});

const db = faultyDynamoDb();
/** Deliveries of another company at the beginning of each partition of the due index. */
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
  // When the time is over, the sweeper may still finish a group of ten entries in each partition.
  expect(writes).toBeLessThanOrEqual(WORK_MS / WRITE_MS + 20 * shards.length);

  at.clock = START + 61 * 60_000;
  expect(await sweep(at.context, { assume: "messages-kept" })).toBe(1);
});
