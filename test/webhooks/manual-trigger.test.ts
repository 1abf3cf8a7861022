/** A button pressed by somebody whose request is killed at every call, and who presses again: one delivery, and it arrives. */
import { beforeAll, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { pauseWebhook, resumeWebhook } from "#shared/webhooks/deliver/paused-backlog.ts";
import { triggerAction } from "#shared/webhooks/events/manual-trigger.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { createRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { createdProspect, deliveries, drain, Killed, newPipeline, type Pipeline, START } from "./delivery-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const PROSPECT = 4_711;

interface Button {
  readonly at: Pipeline;
  readonly press: () => Promise<string>;
}

async function newButton(delayMinutes = 0): Promise<Button> {
  const at = await newPipeline(db, "prospect.deleted");
  const { id } = await createRegistration(contextOn(db.direct), at.companyId, at.webhookId, {
    event: "prospect.updated",
    filter: null,
    delayMinutes,
    triggerMode: "manual",
    manualTriggerButtonText: "Send",
  });
  const row = createdProspect(at.companyId, PROSPECT);
  await db.direct.write({ put: { ...keys.prospect(at.companyId, PROSPECT), ...prospectItem(row) } });
  const context = { ...contextOn(at.context.table, { now: () => at.clock }), commit: at.context.table.transact };
  const caller = { companyId: at.companyId, userId: 1, role: "owner", permissions: [] } as const;
  const press = async () => (await triggerAction(context, at.context, caller, PROSPECT, id)).deliveryId;
  return { at, press };
}

test.each(["before", "after"] as const)("killed at each call, %s it takes effect", { tags: "sized" }, async (when) => {
  const run = async ({ at, press }: Button): Promise<string> => {
    let told: string | undefined;
    while (told === undefined) {
      told = await press().catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error;
        return undefined;
      });
    }
    for (let minute = 0; minute < 2; minute++) {
      await drain(at);
      at.clock += 60_000;
      await sweep({ ...at.context, table: db.direct }, { assume: "messages-kept" });
      at.queue.splice(0, at.queue.length, ...at.queue.filter(({ message }) => message.companyId === at.companyId));
    }
    await drain(at);
    return told;
  };
  const calm = await newButton();
  await run(calm);
  expect(calm.at.posts).toHaveLength(1);
  for (const number of killPointsOf(calm.at.calls.length, when === "before" ? 0 : 2)) {
    const button = await newButton();
    button.at.kill = { at: number, when };
    const told = await run(button);
    const place = `${when} ${calm.at.calls[number - 1]} (${number})`;
    expect(await deliveries(button.at), place).toMatchObject([{ id: told, state: "delivered", trigger: "manual" }]);
    expect(await expectReconciled(button.at, place), place).toMatchObject({ matched: 1, delivered: 1 });
    const cutOff = number > calm.at.calls.indexOf("post");
    expect(button.at.posts.length, place).toBeGreaterThanOrEqual(1);
    expect(button.at.posts.length, place).toBeLessThanOrEqual(cutOff ? 2 : 1);
  }
});

test("ten seconds after the first press the next one is another; before, whoever presses gets the first", async () => {
  const { at, press } = await newButton();
  const first = await press();
  at.clock += 9_999;
  expect(await press()).toBe(first);
  at.clock += 1;
  const second = await press();
  expect(second).not.toBe(first);
  at.clock += 9_999;
  expect(await press()).toBe(second);
  await drain(at);
  expect(at.posts).toHaveLength(2);
  expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2 });
});

test("waits for the registration's delay, is kept while the webhook is paused, and has the whole plan of retries", async () => {
  const { at, press } = await newButton(100);
  at.answers = () => ({ status: 500 });
  const told = await press();
  const api = contextOn(db.direct, { now: () => at.clock });
  await pauseWebhook(api, at.companyId, at.webhookId);
  await drain(at);
  expect(at.posts).toEqual([]);
  expect(at.clock).toBe(START + 100 * 60_000);
  await resumeWebhook(api, at.context.queue, at.companyId, at.webhookId);
  await drain(at);
  expect(at.posts).toHaveLength(10);
  expect(await deliveries(at)).toMatchObject([{ id: told, state: "exhausted", attempt: 10 }]);
  expect(await expectReconciled(at)).toMatchObject({ matched: 1, exhausted: 1 });
});
