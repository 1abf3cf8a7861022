/** Tests that a process does not undo a change that another process has made since it read the row. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Change } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { addToThrottledBacklog } from "#shared/webhooks/deliver/backlogs.ts";
import { drain } from "#shared/webhooks/deliver/drain.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { BREAKER_FAILURES, limiterOf, releaseSlot, releaseUnsent } from "#shared/webhooks/limiter/limiter.ts";
import { drainMessage, messageFor } from "#shared/webhooks/messages.ts";
import { settled, updateIf, whilePending } from "#shared/webhooks/settle.ts";
import { getRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { deleteWebhook, redeliver } from "../harness/verbs.ts";
import { consume, newPipeline, publish, sweepOwn } from "./pipeline.ts";
import { deliveries } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
/** Creates a waiting delivery without a queue message. */
async function stage() {
  const at = await newPipeline(db);
  await publish(at);
  at.queue.splice(0);
  const delivery = present((await deliveries(at))[0]);
  const { companyId, webhookId } = at;
  const rows = {
    webhook: keys.webhook(companyId, webhookId),
    delivery: keys.delivery(companyId, webhookId, delivery.id),
    limiter: limiterKeys.limiter(companyId, webhookId),
  };
  const past = iso(at.clock - 3_600_000);
  /** Returns a context in which another process changes the row just before write number `number` of this row. */
  const changing = (name: keyof typeof rows, change: Change, number = 1): EventContext => {
    let writes = 0;
    const { pk, sk } = rows[name];
    const write: EventContext["table"]["write"] = async (entry) => {
      const own = "put" in entry ? entry.put : entry.update;
      if (own.pk === pk && own.sk === sk && ++writes === number) await db.direct.write({ update: rows[name], change });
      return db.direct.write(entry);
    };
    return { ...at.context, table: { ...db.direct, write } };
  };
  const set = (name: keyof typeof rows, fields: object) =>
    db.direct.write({ update: rows[name], change: { set: { ...fields } } });
  const row = (name: keyof typeof rows) => db.direct.get(rows[name]);
  return { at, delivery, past, changing, set, row, ids: { companyId, webhookId } };
}

test("a delivery that joins a throttled backlog does not change the due time of the backlog", async () => {
  const { at, delivery, past, set, row, ids } = await stage();
  await set("limiter", { type: "limiter", ...ids, dueShard: "DUE#0", dueAt: past });
  const unmarked = limiterOf(ids);
  await addToThrottledBacklog({ ...at.context, table: db.direct }, [delivery], { kind: "full" }, unmarked);
  expect([await row("limiter"), at.queue]).toMatchObject([{ dueAt: past }, []]);
});

test("a backlog that a delivery joins just before its end stays open", async () => {
  const { at, past, changing, set, row, ids } = await stage();
  const empty = { dueShard: "DUE#0", dueAt: past, lookUntil: past, emptySince: past };
  await set("limiter", { type: "limiter", ...ids, ...empty });
  const context = changing("limiter", { remove: ["emptySince"] }, 2);
  await drain(context, drainMessage(ids, "throttled"));
  expect(await row("limiter")).toMatchObject({ dueShard: "DUE#0", lookUntil: iso(at.clock) });
  expect(at.queue).toMatchObject([{ message: drainMessage(ids, "throttled"), at: at.clock }]);
});

const failed = { isSuccess: false, latencyMs: 1 };
const openUntil = iso(Date.UTC(2030, 0, 1));
test.each<[string, object, Change, (...args: Parameters<typeof releaseSlot>) => Promise<unknown>]>([
  ["a failure", { fails: BREAKER_FAILURES - 1 }, { set: { openUntil, openings: 7 } }, releaseSlot],
  ["unsent requests", {}, { set: { openUntil } }, releaseUnsent],
  [
    "the end of a wait after unsent requests",
    { unsent: 1, openUntil: iso(0) },
    { set: { openUntil }, remove: ["unsent"] },
    releaseSlot,
  ],
])(
  "%s does not change a circuit breaker that another sender has opened meanwhile",
  async (_, fields, change, release) => {
    const { delivery, changing, set, row, ids } = await stage();
    await set("limiter", { type: "limiter", ...ids, [delivery.id]: "own", used: 1, ...fields });
    await release(changing("limiter", change, 2), { ...ids, ids: [delivery.id] }, "own", [failed]);
    expect(await row("limiter")).toMatchObject(change.set ?? {});
  },
);

test("a sender does not settle an attempt that is later than its own attempt", async () => {
  const { at, delivery, set } = await stage();
  await set("delivery", { attempt: 2 });
  expect(await updateIf({ table: db.direct }, whilePending(delivery, settled("delivered", at.clock)))).toBeUndefined();
});

test("a step that sends the paused backlog does not resume a delivery that has left the backlog", async () => {
  const { at, past, changing, set, row, ids } = await stage();
  await set("webhook", { dueShard: "DUE#0", dueAt: past });
  await set("delivery", { dueShard: keys.pausedBacklogShard(ids.companyId, ids.webhookId, undefined) });
  const context = changing("delivery", settled("cancelled", at.clock));
  await drain(context, drainMessage(ids, "paused"));
  expect(await row("delivery")).not.toHaveProperty("dueShard");
});

test("a repeated message of an empty paused backlog changes nothing", async () => {
  const { at, row, ids } = await stage();
  const before = await row("webhook");
  await drain({ ...at.context, table: db.direct }, drainMessage(ids, "paused"));
  expect(await row("webhook")).toEqual(before);
});

test("the sweeper queues no delivery that was settled since it was read", async () => {
  const { at, changing, ids } = await stage();
  at.clock += 600_000;
  await sweepOwn({ context: changing("delivery", settled("delivered", at.clock)), companyId: ids.companyId });
  expect(at.queue).toEqual([]);
});

test("a second failure of a receiver keeps the time of the first failure", async () => {
  const { at, delivery, past, changing, row } = await stage();
  at.answers = () => ({ status: 500 });
  await consume({ context: changing("webhook", { set: { failingSince: past } }) }, messageFor(delivery), false);
  expect(await row("webhook")).toMatchObject({ failingSince: past });
});

test("a delivery or registration whose webhook is deleted while it is read is not found", async () => {
  const { at, delivery, ids } = await stage();
  const { companyId, webhookId } = ids;
  const context = at.api;
  const registrationId = delivery.registrationId ?? expect.fail("no registration");
  const key = keys.registration(companyId, webhookId, registrationId);
  const registration = await db.direct.get(key);
  await deleteWebhook(context, companyId, webhookId);
  await db.direct.batchPut([{ ...registration, ...key }]);
  for (const asked of [
    readDelivery(context, companyId, webhookId, delivery.id),
    redeliver(context, at.context.queue, companyId, webhookId, delivery.id),
    getRegistration(context, companyId, webhookId, registrationId),
  ]) {
    await expect(asked).rejects.toMatchObject({ code: "not_found" });
  }
});
