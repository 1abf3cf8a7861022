/**
 * Tests that the sweeper replaces the lost messages of a company beside a very large backlog of another company, and with a small heap. The
 * work of one run is bounded and fair to each company, and later runs handle the remaining due rows.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { CAPACITY, fairStrides, sweep, WORK_MS } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import { START } from "./fixtures.ts";
import { newPipeline, type Pipeline, publish, sweepOwn } from "./pipeline.ts";
import { deliveries } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
/** Number of deliveries in the paused backlog of each webhook. */
const PAUSED = 5_000;
const WEBHOOKS = 26;
const MINUTE = 60_000;

async function lostIn(at: Pipeline): Promise<void> {
  await publish(at);
  at.queue.length = 0;
  at.clock = START + 10 * MINUTE;
}

/** Returns a table whose due index also has paused webhooks. A Query generates their deliveries one by one, so they need no memory. */
function withPausedBacklogs(table: Table, companyId: number): Table {
  const dueAt = iso(START);
  const shard = keys.pausedBacklogShard(companyId, 0).slice(0, -1);
  return {
    ...table,
    query: async function* (spec) {
      for (let id = 1; spec.pk === keys.pausedWebhooksShard() && id <= WEBHOOKS; id++) {
        yield { ...keys.webhook(companyId, id), dueShard: spec.pk, dueAt };
      }
      const isPausedBacklog = spec.index !== undefined && spec.pk.startsWith(shard) && !spec.pk.endsWith("#BULK");
      for (let i = 0; isPausedBacklog && i < PAUSED; i++) {
        const id = `dlv_${String(i).padStart(29, "0")}`;
        yield { ...keys.delivery(companyId, Number(spec.pk.slice(shard.length)), id), dueShard: spec.pk, dueAt };
      }
      yield* table.query(spec);
    },
  };
}

test("130 000 deliveries of 26 paused webhooks delay neither lost messages nor metrics", async () => {
  const at = await newPipeline(db);
  await lostIn(at);
  process.env.LOG_LEVEL = "info";
  const lines: string[] = [];
  const log = vi.spyOn(process.stderr, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  try {
    const table = withPausedBacklogs(at.context.table, 900_001);
    expect(await sweep({ ...at.context, table }, { assume: "messages-kept" })).toBe(1);
  } finally {
    log.mockRestore();
    process.env.LOG_LEVEL = "error";
  }
  expect(at.queue.map(({ message }) => message.companyId)).toEqual([at.companyId]);
  const Line = z.object({ message: z.looseObject({ event: z.string() }) });
  const logged = lines.map((line) => Line.parse(JSON.parse(line)).message);
  const counted = { event: "deliveries waiting", inBacklogs: WEBHOOKS * PAUSED };
  expect(logged).toContainEqual(expect.objectContaining(counted));
});

test("the sweeper succeeds although its read for metrics fails", async () => {
  const at = await newPipeline(db);
  await lostIn(at);
  const { table } = at.context;
  const query: typeof table.query = (spec) => {
    if (spec.pk === keys.pausedWebhooksShard()) throw new Error("cannot be read");
    return table.query(spec);
  };
  await sweep({ ...at.context, table: { ...table, query } }, { assume: "messages-kept" });
  expect(at.queue.map(({ message }) => message.companyId)).toContain(at.companyId);
});

const Swept = z.object({ queued: z.int(), writes: z.int(), isFound: z.boolean() });

const OVERDUE = sized({ short: 100_000, wide: 1_000_000 });

test(`${OVERDUE} overdue deliveries of one company need bounded writes and a heap of 64 MB, and no other company waits`, {
  tags: "sized",
}, async () => {
  const at = await newPipeline(db);
  await lostIn(at);
  const workerData = { endpoint: db.directEndpoint, companyId: 900_002, other: at.companyId, count: OVERDUE };
  const resourceLimits = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 16 };
  const worker = new Worker(new URL("./sweeping-worker.ts", import.meta.url), { workerData, resourceLimits });
  const [swept] = await once(worker, "message");
  const { writes, isFound } = Swept.parse(swept);
  expect(isFound).toBe(true);
  expect(writes).toBeLessThanOrEqual(CAPACITY + 100);
  expect(writes).toBeGreaterThan(CAPACITY * 0.9);
  expect((await deliveries(at)).map(({ sweptAt }) => sweptAt)).toEqual([iso(START + 10 * MINUTE)]);
});

test("an entry whose row cannot be written does not stop the other entries, but makes the sweeper fail", async () => {
  const at = await newPipeline(db);
  await lostIn(at);
  const { table } = at.context;
  const broken: Item = { ...keys.delivery(900_003, 1, "dlv_x"), dueShard: keys.dueShards()[0], dueAt: iso(START) };
  const query: typeof table.query = async function* (spec) {
    if (spec.pk === broken.dueShard) yield broken;
    yield* table.query(spec);
  };
  const write: typeof table.write = (entry) => {
    if ("update" in entry && entry.update.sk === broken.sk) return Promise.reject(new Error("unreadable"));
    return table.write(entry);
  };
  const swept = sweep({ ...at.context, table: { ...table, query, write } }, { assume: "messages-kept" });
  await expect(swept).rejects.toThrow("unreadable");
  expect(at.queue.map(({ message }) => message.companyId)).toContain(at.companyId);
});

/** Number of entries of the due index that one run of the sweeper divides among the companies. */
const SHARED = 1_000;
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
      const strides = fairStrides(new Map(companies), SHARED);
      const part = SHARED / companies.length;
      let sum = 0;
      for (const [companyId, count] of companies) {
        const taken = takenOf(count, strides(companyId), minute);
        sum += taken;
        if (count <= part) expect(taken).toBe(count);
        else expect(taken).toBeGreaterThanOrEqual(Math.floor(part / 2));
      }
      expect(sum).toBeLessThanOrEqual(SHARED + companies.length);
    }),
    { numRuns: 50 },
  );
});

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
        yield { ...keys.delivery(900_003, 1, `dlv_${spec.pk}_${i}`), dueShard: spec.pk, dueAt: iso(START) };
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

  at.clock = START + 61 * MINUTE;
  expect(await sweepOwn(at)).toBe(1);
});
