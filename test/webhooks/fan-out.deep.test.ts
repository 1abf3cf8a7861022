/** Events with many matches, with publisher and expander killed at each call: nothing is lost, nothing is made twice; and in a small heap. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { Killed, killable } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { consume, deliveriesOf } from "./delivery-pipeline.ts";
import { expandAll, type ManyScene, newManyScene, territoryChange } from "./fan-out-scene.ts";
import { expectReconciled, reconcileNow } from "./reconciled.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const WEBHOOKS = 3;
const EACH = 40;
const MATCHES = WEBHOOKS * EACH;

const scene = (delayMinutes = 0): Promise<ManyScene> =>
  newManyScene(db, { webhooks: WEBHOOKS, each: EACH, delayMinutes });

/** The stream repeats a record until it has been published. */
async function publish(at: ManyScene, ...versions: number[]): Promise<void> {
  for (const version of versions) {
    for (;;) {
      try {
        const context = killable(at.context);
        await publishChanges(context, batchReads(context), [territoryChange(at.companyId, version, 3, version)]);
        break;
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
      }
    }
  }
}

async function idsOf({ companyId, webhookIds }: ManyScene): Promise<string[]> {
  const found = await Promise.all(webhookIds.map((webhookId) => deliveriesOf(db, { companyId, webhookId })));
  return found.flat().map(({ id }) => id);
}

/** Each match is one delivery, which has a message. */
async function expectAll(at: ManyScene, queued: readonly string[], place: string): Promise<void> {
  const ids = await idsOf(at);
  expect(ids, place).toHaveLength(MATCHES);
  expect(new Set(queued), place).toEqual(new Set(ids));
  expect(await expectReconciled(at, place)).toMatchObject({ matched: MATCHES, waiting: MATCHES, expanding: 0 });
}

describe("killed at each call, before and after it takes effect", () => {
  test.each(["before", "after"] as const)("%s: each match is told once", { tags: "sized" }, async (when) => {
    const calm = await scene();
    await publish(calm, 2);
    await expandAll(calm);
    for (let number = 1; number <= calm.calls.length; number++) {
      const at = await scene();
      at.kill = { at: number, when };
      await publish(at, 2);
      await expectAll(at, await expandAll(at), `${when} ${calm.calls[number - 1]} (${number})`);
    }
  });

  test.each(["before", "after"] as const)(
    "%s, with a delay: each event joins the window of each registration",
    { tags: "sized" },
    async (when) => {
      const calm = await scene(10);
      await publish(calm, 2, 3);
      await expandAll(calm);
      // Of calls of the same kind, made for one registration after the other, a few are struck.
      const struck = killPointsOf(calm.calls.length, when === "before" ? 1 : 4).filter((_, i) => i % 9 === 0);
      expect(struck.length).toBeGreaterThan(5);
      for (const number of struck) {
        const at = await scene(10);
        at.kill = { at: number, when };
        await publish(at, 2, 3);
        await expectAll(at, await expandAll(at), `${when} ${calm.calls[number - 1]} (${number})`);
      }
    },
  );

  test("the queue lost with it: the sweeper finds what is left", { tags: "sized" }, async () => {
    const calm = await scene();
    await publish(calm, 2);
    await expandAll(calm);
    for (const number of killPointsOf(calm.calls.length, 2)) {
      const at = await scene();
      at.kill = { at: number, when: "after" };
      await publish(at, 2);
      const queued: string[] = [];
      for (let minute = 0; minute < 13; minute++) {
        queued.push(...(await expandOnce(at)));
        at.clock += 60_000;
        await sweep({ ...at.context, table: ownIndex(at) }, { assume: "messages-kept" });
      }
      await expectAll(at, queued, String(number));
    }
  });
});

/** What other tests have left is none of this one's. */
function ownIndex({ companyId }: ManyScene): Table {
  return {
    ...db.direct,
    query: async function* (spec) {
      for await (const item of db.direct.query(spec)) {
        if (spec.index === undefined || String(item.pk).startsWith(`C#${companyId}#`)) yield item;
      }
    },
  };
}

/** Likewise, but a killed function takes all messages with it. */
async function expandOnce(at: ManyScene): Promise<string[]> {
  const queued: string[] = [];
  for (let next = at.queue.shift(); next !== undefined; next = at.queue.shift()) {
    at.clock = Math.max(at.clock, next.at);
    if ("deliveryId" in next.message) queued.push(next.message.deliveryId);
    else {
      await consume(at, next.message, next.isRepeat).catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error;
        at.queue.length = 0;
      });
    }
  }
  return queued;
}

test("a function that was taken for dead and goes on beside another: each match is told once", async () => {
  const calm = await scene();
  await publish(calm, 2);
  const before = calm.calls.length;
  await expandAll(calm);
  for (let number = before + 1; number <= calm.calls.length; number++) {
    const at = await scene();
    await publish(at, 2);
    const [message] = at.queue.map((entry) => entry.message);
    if (message === undefined) throw new Error("no message");
    const work = async (): Promise<void> => {
      at.clock += 25_000;
      await consume({ context: { ...at.context, table: db.direct } }, message, true);
    };
    at.meanwhile = { at: number, work };
    await expectAll(at, await expandAll(at), `${calm.calls[number - 1]} (${number})`);
  }
});

test("batches with other borders, in any order and twice: each match is told once", async () => {
  const at = await scene();
  const [first, second, third] = [2, 3, 4].map((version) => territoryChange(at.companyId, version, 3, version));
  if (first === undefined || second === undefined || third === undefined) throw new Error("no changes");
  for (const batch of [[first, second], [third], [second, third, first], [first]]) {
    await publishChanges(at.context, batchReads(at.context), batch);
  }
  const queued = await expandAll(at);
  await publishChanges(at.context, batchReads(at.context), [third, first]);
  await expandAll(at);
  expect(new Set(queued).size).toBe(3 * MATCHES);
  expect(await idsOf(at)).toHaveLength(3 * MATCHES);
  expect(await reconcileNow(at)).toMatchObject({ faults: [], matched: 3 * MATCHES, expanding: 0 });
});

const Published = z.object({ messages: z.int(), failed: z.int(), bytes: z.int() });

test("three full batches of the largest event for 2 000 registrations with the largest filters are published with a heap of 256 MB", async () => {
  const filter = JSON.stringify({ "territory.totalProperties": Array.from({ length: 1_000 }, (_, i) => i) });
  expect(filter.length).toBeGreaterThan(limits.filterBytes * 0.9);
  expect(filter.length).toBeLessThanOrEqual(limits.filterBytes);
  const at = await newManyScene(db, {
    webhooks: limits.webhooksPerCompany,
    each: limits.registrationsPerWebhook,
    filter,
  });
  const { companyId } = at;
  const points = limits.polygonPointsMax;
  const workerData = { endpoint: db.directEndpoint, companyId, batches: 3, records: 41, points };
  const resourceLimits = { maxOldGenerationSizeMb: 208, maxYoungGenerationSizeMb: 48 };
  const worker = new Worker(new URL("./publishing-worker.ts", import.meta.url), { workerData, resourceLimits });
  const [published] = await once(worker, "message");
  const { messages, failed, bytes } = Published.parse(published);
  expect(failed).toBe(0);
  // Lambda hands over 6 MB at once.
  expect(bytes).toBeGreaterThan(5_500_000);
  // One for the events that are published together, 25 at most.
  expect(messages).toBe(3 * 2);
  expect(await expectReconciled(at)).toMatchObject({ matched: 0, expanding: 3 * 41 * 2_000 });
});
