/** Tests that the sweeper replaces the lost messages of a company beside a very large backlog of another company, and with a small heap. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { CAPACITY, sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import { deliveries, newPipeline, type Pipeline, publish, START } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
/** Deliveries in the paused backlog of each webhook. */
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
  expect(logged).toContainEqual(
    expect.objectContaining({ event: "deliveries waiting", inBacklogs: WEBHOOKS * PAUSED }),
  );
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
