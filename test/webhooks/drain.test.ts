/**
 * Tests the drain, which sends a webhook's backlog in steps. Only one step may run at a time, and each step must send exactly one message
 * to start the next step.
 */
import { beforeAll, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import { exists } from "#shared/db/expression.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { drain, LEASE_MS, type Step } from "#shared/webhooks/drain.ts";
import { throttledDrainMessage } from "#shared/webhooks/messages.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newPipeline, type Pipeline, START } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
beforeAll(() => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

/** Creates a backlog whose next drain step is due now. */
async function stage() {
  const at = await newPipeline(db);
  const { companyId, webhookId } = at;
  const key = limiterKeys.limiter(companyId, webhookId);
  await db.direct.batchPut([
    { ...key, type: "limiter", companyId, webhookId, dueShard: "DUE#0", lookUntil: iso(START) },
  ]);
  const message = throttledDrainMessage(companyId, webhookId);
  const backlog = { key, lease: "lookUntil", isOpen: exists("dueShard"), message } as const;
  const run = (step: (row: Item, startMs: number) => Promise<Step>, context: EventContext = at.context) =>
    drain(context, backlog, step);
  const row = async (): Promise<Item> => (await db.direct.get(key)) ?? {};
  return { at, run, row };
}

const messagesOf = ({ queue }: Pipeline) => queue.map(({ at }) => at - START);

test("a step stores its position and its next time, then sends one message", async () => {
  const { at, run, row } = await stage();
  await run(async () => ({ nextMs: START + 5_000, position: { set: { emptySince: iso(START) } } }));
  expect(await row()).toMatchObject({ lookUntil: iso(START + 5_000), emptySince: iso(START) });
  expect(messagesOf(at)).toEqual([5_000]);
});

test("a message that finds the lease taken, or comes before the next step, changes nothing", async () => {
  const { at, run, row } = await stage();
  const refused = () => run(() => Promise.reject(new Error("a second step must not run")));
  await run(async () => {
    await refused();
    return { nextMs: START + 5_000 };
  });
  at.clock = START + 3_000;
  await refused();
  expect(await row()).toMatchObject({ lookUntil: iso(START + 5_000) });
  expect(messagesOf(at)).toEqual([5_000]);
});

test("a step that fails releases its lease, so its repeated message starts immediately", async () => {
  const { at, run } = await stage();
  await expect(run(() => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  await run(async () => ({ nextMs: START }));
  expect(messagesOf(at)).toEqual([0]);
});

test("a step that outlives its lease stores nothing and sends no message", async () => {
  const { at, run, row } = await stage();
  await run(async () => {
    at.clock = START + LEASE_MS;
    await run(async () => ({ nextMs: at.clock + 1_000 }));
    return { end: { remove: ["dueShard"] }, when: exists("dueShard") };
  });
  expect(await row()).toMatchObject({ dueShard: "DUE#0", lookUntil: iso(START + LEASE_MS + 1_000) });
  expect(messagesOf(at)).toEqual([LEASE_MS + 1_000]);
});

test("a step that fails after the end of its lease does not free the lease of the next step", async () => {
  const { at, run, row } = await stage();
  const late = run(async () => {
    at.clock = START + LEASE_MS;
    await run(async () => ({ nextMs: at.clock + 1_000 }));
    throw new Error("broken");
  });
  await expect(late).rejects.toThrow("broken");
  expect(await row()).toMatchObject({ lookUntil: iso(START + LEASE_MS + 1_000) });
});

test("an empty backlog is closed; if the condition for closing it fails, the next step follows immediately", async () => {
  const { at, run, row } = await stage();
  const end = { remove: ["dueShard", "lookUntil"] };
  await run(async () => ({ end, when: exists("emptySince") }));
  expect(await row()).toHaveProperty("dueShard");
  expect(messagesOf(at)).toEqual([0]);
  await run(async () => ({ end, when: exists("dueShard") }));
  expect(await row()).not.toHaveProperty("dueShard");
  await run(() => Promise.reject(new Error("a closed backlog must not be drained")));
  expect(messagesOf(at)).toEqual([0]);
});
