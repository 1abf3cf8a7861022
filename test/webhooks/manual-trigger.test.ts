/**
 * Tests that a manual trigger makes exactly one delivery, and that this delivery arrives. The test kills the request at any call and then
 * repeats it.
 */

import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { untilDone } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { createRegistration, pauseWebhook, resumeWebhook, triggerAction } from "../harness/verbs.ts";
import {
  createdProspect,
  deliveries,
  drain,
  newPipeline,
  type Pipeline,
  START,
  settleFor,
} from "./delivery-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
const PROSPECT = 4_711;
const OTHER = 4_712;

interface Action {
  readonly at: Pipeline;
  readonly trigger: (prospectId?: number) => Promise<string>;
}

async function newAction(delayMinutes = 0): Promise<Action> {
  const at = await newPipeline(db, "prospect.deleted");
  const { id } = await createRegistration(contextOn(db.direct), at.companyId, at.webhookId, {
    event: "prospect.updated",
    filter: null,
    delayMinutes,
    triggerMode: "manual",
    manualTriggerButtonText: "Send",
  });
  for (const prospectId of [PROSPECT, OTHER]) {
    const row = createdProspect(at.companyId, prospectId);
    await db.direct.write({ put: { ...keys.prospect(at.companyId, prospectId), ...prospectItem(row) } });
  }
  const context = contextOn(at.context.table, { now: () => at.clock });
  const caller = { companyId: at.companyId, userId: 1, role: "owner", permissions: [] } as const;
  const trigger = async (prospectId = PROSPECT) =>
    (await triggerAction(context, at.context, caller, prospectId, id)).deliveryId;
  return { at, trigger };
}

test.each(["before", "after"] as const)(
  "a kill at each call, %s it takes effect, leaves one delivery that arrives",
  { tags: "sized" },
  async (when) => {
    const run = async ({ at, trigger }: Action): Promise<string> => {
      const deliveryId = await untilDone(() => trigger());
      await settleFor(at, 2);
      return deliveryId;
    };
    const calm = await newAction();
    await run(calm);
    expect(calm.at.posts).toHaveLength(1);
    for (const number of killPointsOf(calm.at.calls.length, when === "before" ? 0 : 2)) {
      const action = await newAction();
      action.at.kill = { at: number, when };
      const deliveryId = await run(action);
      const label = `${when} ${calm.at.calls[number - 1]} (${number})`;
      expect(await deliveries(action.at), label).toMatchObject([
        { id: deliveryId, state: "delivered", trigger: "manual" },
      ]);
      expect(await expectReconciled(action.at, label), label).toMatchObject({ matched: 1, delivered: 1 });
      const cutOff = number > calm.at.calls.indexOf("post");
      expect(action.at.posts.length, label).toBeGreaterThanOrEqual(1);
      expect(action.at.posts.length, label).toBeLessThanOrEqual(cutOff ? 2 : 1);
    }
  },
);

test("a trigger within ten seconds returns the first delivery, and a later trigger makes another delivery", async () => {
  const { at, trigger } = await newAction();
  const first = await trigger();
  at.clock += 9_999;
  expect(await trigger()).toBe(first);
  at.clock += 1;
  const second = await trigger();
  expect(second).not.toBe(first);
  at.clock += 9_999;
  expect(await trigger()).toBe(second);
  await drain(at);
  expect(at.posts).toHaveLength(2);
  expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2 });
});

test("twenty concurrent triggers make one delivery, and a trigger for another prospect makes another one", async () => {
  const { at, trigger } = await newAction();
  const made = new Set(await Promise.all(Array.from({ length: 20 }, () => trigger())));
  expect(made.size).toBe(1);
  made.add(await trigger(OTHER));
  await drain(at);
  expect((await deliveries(at)).map(({ id }) => id).toSorted()).toEqual([...made].toSorted());
  expect(at.posts).toHaveLength(2);
});

test("a manual delivery waits for the registration's delay, is kept during a pause, and gets the whole retry plan", async () => {
  const { at, trigger } = await newAction(100);
  at.answers = () => ({ status: 500 });
  const deliveryId = await trigger();
  const api = contextOn(db.direct, { now: () => at.clock });
  await pauseWebhook(api, at.companyId, at.webhookId);
  await drain(at);
  expect(at.posts).toEqual([]);
  expect(at.clock).toBe(START + 100 * 60_000);
  await resumeWebhook(api, at.context.queue, at.companyId, at.webhookId);
  await drain(at);
  expect(at.posts).toHaveLength(10);
  expect(await deliveries(at)).toMatchObject([{ id: deliveryId, state: "exhausted", attempt: 10 }]);
  expect(await expectReconciled(at)).toMatchObject({ matched: 1, exhausted: 1 });
});
