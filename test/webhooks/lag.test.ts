/** Tests the log lines from which CloudWatch makes metrics: delays of deliveries, results of attempts, and missing deliveries. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { countOverdue, reportLag } from "#shared/webhooks/reconcile/lag.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pauseWebhook } from "../harness/verbs.ts";
import { DeliverySimulation } from "./delivery-simulation.ts";
import { START } from "./fixtures.ts";
import { deliveriesOf } from "./stored-deliveries.ts";

const Line = z.object({ message: z.looseObject({ event: z.string() }) });
const db = faultyDynamoDb("test");
let lines: z.infer<typeof Line>["message"][];
const level = process.env.LOG_LEVEL;
beforeEach(async () => {
  process.env.LOG_LEVEL = "info";
  lines = [];
  vi.spyOn(process.stderr, "write").mockImplementation(
    (text) => lines.push(Line.parse(JSON.parse(String(text))).message) > 0,
  );
});
afterEach(async () => {
  vi.restoreAllMocks();
  process.env.LOG_LEVEL = level;
});

const of = (event: string) => lines.filter((line) => line.event === event).map(({ event: _, ...fields }) => fields);
const MINUTE = 60_000;

test("deliveries in paused and throttled backlogs are logged as waiting for each company, and not as overdue", async () => {
  const simulation = new DeliverySimulation(db, 10);
  simulation.sweeps = false;
  const [paused, down, idle] = [await simulation.hook(), await simulation.hook(), await simulation.hook()];
  await pauseWebhook(simulation.api, paused.companyId, paused.webhookId);
  simulation.answers = () => ({ ms: 10, status: 503 });
  await simulation.publish(paused, 1, 3);
  await simulation.publish(down, 1, 20);
  await simulation.runUntil(START + 3_000);
  const throttled = (await deliveriesOf(db, down)).filter(({ dueShard }) => dueShard?.includes("GATED")).length;
  expect(throttled).toBeGreaterThan(5);
  simulation.queue.length = 0;
  simulation.clock = START + 2 * MINUTE;
  lines.length = 0;
  await sweep(simulation.context, { assume: "messages-kept" });
  // The three deliveries of the company `paused` wait too, so they are counted.
  const waiting = (await deliveriesOf(db, down)).length;
  const [all] = of("deliveries waiting");
  expect(all).toMatchObject({ waiting: waiting + 3, inBacklogs: throttled + 3, oldestDueSeconds: 120 });
  expect(all?.overdueSeconds).toBeLessThan(120);
  expect(of("company waiting").toSorted((a, b) => Number(a.companyId) - Number(b.companyId))).toEqual([
    { companyId: paused.companyId, waiting: 3 },
    { companyId: down.companyId, waiting },
  ]);
  expect(of("company waiting").map(({ companyId }) => companyId)).not.toContain(idle.companyId);
});

test("each webhook whose backlog is not counted in time is logged as one webhook that was not counted", async () => {
  const simulation = new DeliverySimulation(db, 10);
  const hooks = [await simulation.hook(), await simulation.hook()];
  for (const { companyId, webhookId } of hooks) await pauseWebhook(simulation.api, companyId, webhookId);
  const report = async (endMs: number) => {
    lines.length = 0;
    await reportLag(simulation.context, await countOverdue(db.direct, iso(simulation.clock)), endMs);
    return of("deliveries waiting")[0];
  };
  expect(await report(simulation.clock - 1)).toMatchObject({ webhooksNotCounted: hooks.length });
  expect(await report(simulation.clock)).not.toHaveProperty("webhooksNotCounted");
});

test("without waiting deliveries all numbers are 0, and no company is named", async () => {
  const simulation = new DeliverySimulation(db, 10);
  await sweep(simulation.context, { assume: "messages-kept" });
  expect(of("deliveries waiting")).toEqual([
    { waiting: 0, inBacklogs: 0, overdueSeconds: 0, oldestDueSeconds: 0, fanOuts: 0 },
  ]);
  expect(of("company waiting")).toEqual([]);
});

test("the log has the result of each attempt, and a line for a message whose delivery is missing", async () => {
  const simulation = new DeliverySimulation(db, 10);
  const hook = await simulation.hook();
  const answers = [
    { status: 204 },
    { status: 302 },
    { status: 429 },
    { status: 503 },
    { status: null, error: "no answer within 10000 ms" },
    { status: null, error: "ECONNREFUSED: x" },
  ];
  for (const [i, answer] of answers.entries()) {
    simulation.answers = () => ({ ms: 1, ...answer });
    await simulation.publish(hook, i + 1, 1);
    await simulation.runUntil(simulation.clock + 100);
  }
  expect(of("attempted")[0]).toMatchObject({ companyId: hook.companyId, webhookId: hook.webhookId });
  expect(of("attempted").map(({ status, result }) => [status, result])).toEqual([
    [204, "2xx"],
    [302, "refused"],
    [429, "refused"],
    [503, "5xx"],
    [null, "no answer"],
    [null, "no answer"],
  ]);
  await simulation.publish(hook, 100, 1);
  const lost = (await deliveriesOf(db, hook)).find(({ eventId }) => eventId.includes("100"));
  if (lost === undefined) throw new Error("no delivery");
  await db.direct.batchRemove([keys.delivery(lost.companyId, lost.webhookId, lost.id)]);
  await simulation.runUntil(simulation.clock + 100);
  const { companyId, webhookId } = hook;
  expect(of("delivery missing")).toEqual([{ companyId, webhookId, deliveryId: lost.id }]);
});
