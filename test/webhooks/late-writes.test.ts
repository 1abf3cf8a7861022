/** A writer of a row of webhooks that another one has changed since it was read does not undo this change. */
import { beforeAll, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Change } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { drainPausedBacklog } from "#shared/webhooks/deliver/paused-backlog.ts";
import { drainThrottledBacklog } from "#shared/webhooks/deliver/throttled-backlog.ts";
import { addToThrottledBacklog, newLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { messageFor, pausedDrainMessage, throttledDrainMessage } from "#shared/webhooks/messages.ts";
import { settled, updateIf, whilePending } from "#shared/webhooks/settle.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { consume, deliveries, newPipeline, publish, sweepOwn } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
beforeAll(() => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

/** A waiting delivery without a message. */
async function stage() {
  const at = await newPipeline(db);
  await publish(at);
  at.queue.splice(0);
  const [delivery] = await deliveries(at);
  if (delivery === undefined) throw new Error("no delivery");
  const { companyId, webhookId } = at;
  const rows = {
    webhook: keys.webhook(companyId, webhookId),
    delivery: keys.delivery(companyId, webhookId, delivery.id),
    limiter: limiterKeys.limiter(companyId, webhookId),
  };
  const past = iso(at.clock - 3_600_000);
  /** The table changes the row just before write number `number` of this row. */
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

test("the mark of a backlog that has one keeps its due time", async () => {
  const { at, delivery, past, set, row, ids } = await stage();
  await set("limiter", { ...newLimiter(ids.companyId, ids.webhookId), dueShard: "DUE#0", dueAt: past });
  const unmarked = newLimiter(ids.companyId, ids.webhookId);
  await addToThrottledBacklog({ ...at.context, table: db.direct }, [delivery], { kind: "full" }, unmarked);
  expect([await row("limiter"), at.queue]).toMatchObject([{ dueAt: past }, []]);
});

test("a backlog that a delivery joins just before its end stays open", async () => {
  const { past, changing, set, row, ids } = await stage();
  const empty = { dueShard: "DUE#0", dueAt: past, lookUntil: past, emptySince: past };
  await set("limiter", { ...newLimiter(ids.companyId, ids.webhookId), ...empty });
  const context = changing("limiter", { remove: ["emptySince"] }, 2);
  await drainThrottledBacklog(context, throttledDrainMessage(ids.companyId, ids.webhookId));
  expect(await row("limiter")).toMatchObject({ dueShard: "DUE#0" });
});

test("a sender does not settle a later attempt than its own", async () => {
  const { at, delivery, set } = await stage();
  await set("delivery", { attempt: 2 });
  expect(await updateIf({ table: db.direct }, whilePending(delivery, settled("delivered", at.clock)))).toBeUndefined();
});

test("a step of the paused backlog does not resume a delivery that has left it", async () => {
  const { at, past, changing, set, row, ids } = await stage();
  await set("webhook", { dueShard: "DUE#0", dueAt: past });
  await set("delivery", { dueShard: keys.pausedBacklogShard(ids.companyId, ids.webhookId, undefined) });
  const context = changing("delivery", settled("cancelled", at.clock));
  await drainPausedBacklog(context, pausedDrainMessage(ids.companyId, ids.webhookId));
  expect(await row("delivery")).not.toHaveProperty("dueShard");
});

test("a repeated message of an empty paused backlog changes nothing", async () => {
  const { at, row, ids } = await stage();
  const before = await row("webhook");
  await drainPausedBacklog({ ...at.context, table: db.direct }, pausedDrainMessage(ids.companyId, ids.webhookId));
  expect(await row("webhook")).toEqual(before);
});

test("the sweeper queues no delivery that was settled since it was read", async () => {
  const { at, changing, ids } = await stage();
  at.clock += 600_000;
  await sweepOwn({ context: changing("delivery", settled("delivered", at.clock)), companyId: ids.companyId });
  expect(at.queue).toEqual([]);
});

test("a second failure keeps the time of the first one", async () => {
  const { at, delivery, past, changing, row } = await stage();
  at.answers = () => ({ status: 500 });
  await consume({ context: changing("webhook", { set: { failingSince: past } }) }, messageFor(delivery), false);
  expect(await row("webhook")).toMatchObject({ failingSince: past });
});
