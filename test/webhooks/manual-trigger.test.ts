/** Tests that a manual trigger makes exactly one delivery, which arrives. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { untilDone } from "../harness/killable.ts";
import { createRegistration, triggerAction } from "../harness/verbs.ts";
import { createdProspect, manual, START } from "./fixtures.ts";
import { drain, killedAtEach, newPipeline, type Pipeline, settleFor } from "./pipeline.ts";
import { deliveries, expectReconciled } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const PROSPECT = 4_711;
const OTHER = 4_712;

interface Action extends Pipeline {
  readonly trigger: (prospectId?: number) => Promise<string>;
}

async function newAction(delayMinutes = 0): Promise<Action> {
  const at = await newPipeline(db, "prospect.deleted");
  const registration = manual("prospect.updated", delayMinutes);
  const { id } = await createRegistration(at.api, at.companyId, at.webhookId, registration);
  for (const prospectId of [PROSPECT, OTHER]) {
    const row = createdProspect(at.companyId, prospectId);
    await db.direct.write({ put: { ...keys.prospect(at.companyId, prospectId), ...prospectItem(row) } });
  }
  const context = contextOn(at.context.table, at.context.clock);
  const trigger = async (prospectId = PROSPECT) =>
    (await triggerAction(context, at.context, at.caller, prospectId, id)).deliveryId;
  return Object.assign(at, { trigger });
}

test("a kill at each call leaves one delivery that arrives", { tags: "sized" }, async () => {
  let deliveryId = "";
  const run = async (at: Action): Promise<void> => {
    deliveryId = await untilDone(() => at.trigger());
    await settleFor(at, 2);
  };
  const calm = await killedAtEach({ stage: newAction, run }, async (at, place, number, calls) => {
    expect(await deliveries(at), place).toMatchObject([{ id: deliveryId, state: "delivered", trigger: "manual" }]);
    expect(await expectReconciled(at, place), place).toMatchObject({ matched: 1, delivered: 1 });
    expect(at.posts.length, place).toBeGreaterThanOrEqual(1);
    expect(at.posts.length, place).toBeLessThanOrEqual(number > calls.indexOf("post") ? 2 : 1);
  });
  expect(calm.posts).toHaveLength(1);
});

test("a trigger within ten seconds returns the first delivery, and a later trigger makes another delivery", async () => {
  const at = await newAction();
  const first = await at.trigger();
  at.clock += limits.doubleTriggerMs - 1;
  expect(await at.trigger()).toBe(first);
  at.clock += 1;
  const second = await at.trigger();
  expect(second).not.toBe(first);
  at.clock += limits.doubleTriggerMs - 1;
  expect(await at.trigger()).toBe(second);
  await drain(at);
  expect(at.posts).toHaveLength(2);
  expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2 });
});

test("twenty concurrent triggers make one delivery, and a trigger for another prospect makes another one", async () => {
  const at = await newAction();
  const made = new Set(await Promise.all(Array.from({ length: 20 }, () => at.trigger())));
  expect(made.size).toBe(1);
  made.add(await at.trigger(OTHER));
  await drain(at);
  expect((await deliveries(at)).map(({ id }) => id).toSorted()).toEqual([...made].toSorted());
  expect(at.posts).toHaveLength(2);
});

test("a manual delivery waits for the registration's delay, is kept during a pause, and gets the whole retry plan", async () => {
  const at = await newAction(100);
  at.answers = () => ({ status: 500 });
  const deliveryId = await at.trigger();
  await at.pause();
  await drain(at);
  expect(at.posts).toEqual([]);
  expect(at.clock).toBe(START + 100 * 60_000);
  await at.resume();
  await drain(at);
  expect(at.posts).toHaveLength(10);
  expect(await deliveries(at)).toMatchObject([{ id: deliveryId, state: "exhausted", attempt: 10 }]);
  expect(await expectReconciled(at)).toMatchObject({ matched: 1, exhausted: 1 });
});
