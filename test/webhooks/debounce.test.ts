/** Tests that the events of a record within a registration's delay become one delivery, which contains each event once. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { deleteRegistration, pauseWebhook, resumeWebhook, updateRegistration } from "../harness/verbs.ts";
import { bodies, change, DELAY, MINUTE, names, namesIn, publish } from "./debounce-stage.ts";
import {
  deliveries,
  drain,
  expectReconciled,
  newPipeline,
  type Pipeline,
  publishIn,
  START,
  statesOf,
} from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
const pipeline = (delayMinutes = DELAY): Promise<Pipeline> => newPipeline(db, "prospect.updated", delayMinutes);
const Counted = z.object({ eventCount: z.int() });

describe("a debounce window", () => {
  test("is one delivery with all events of a record up to its due time, after which the next window opens", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0), change(at, 3, 1), change(at, 4, 9.99), change(at, 5, 10), change(at, 6, 11));
    await publish(at, change(at, 2, 3, 77));
    await drain(at);
    const [first, other, second, ...more] = bodies(at);
    expect(more).toEqual([]);
    expect(first && namesIn(first)).toEqual(names(2, 3, 4));
    expect(first?.data.prospect.name).toBe("name 4");
    await expectReconciled(at);
    expect(first?.createdAt).toBe(new Date(START).toISOString());
    expect(second && namesIn(second)).toEqual(names(5, 6));
    expect(other?.data.prospect.id).toBe(77);
    const sentAt = at.posts.map(({ headers }) => Number(headers["webhook-timestamp"]) * 1_000 - START);
    expect(sentAt).toEqual([10 * MINUTE, 13 * MINUTE, 20 * MINUTE]);
    expect((await deliveries(at)).every(({ state }) => state === "delivered")).toBe(true);
    expect(await db.keysOf(`C#${at.companyId}#D#`)).not.toContainEqual(
      expect.objectContaining({ sk: expect.stringMatching(/^W#/) }),
    );
  });

  test("that was sent is not reopened by a late event, which opens a new window", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await drain(at);
    await publish(at, change(at, 3, 5));
    expect(at.clock).toBe(START + 10 * MINUTE);
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2), names(3)]);
    expect(at.clock).toBe(START + 15 * MINUTE);
  });
});

describe("a change during the delay", () => {
  test("deleting the registration cancels its waiting delivery", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await deleteRegistration(at.api, at.companyId, at.webhookId, at.registrationId);
    await publish(at, change(at, 3, 1));
    await drain(at);
    expect(at.posts).toEqual([]);
    expect(await statesOf(at)).toEqual(["cancelled"]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, cancelled: 1 });
  });

  test("a paused webhook keeps its windows, each of which is sent with its own events after the resumption", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await pauseWebhook(at.api, at.companyId, at.webhookId);
    await drain(at);
    await publish(at, change(at, 3, 5), change(at, 4, 15));
    at.clock = START + 60 * MINUTE;
    await drain(at);
    expect(at.posts).toEqual([]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 2, paused: 2 });
    await resumeWebhook(at.api, at.context.queue, at.companyId, at.webhookId);
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2, 3), names(4)]);
  });

  test("an event that was sent without delay is not sent again after a delay is set", async () => {
    const at = await pipeline(0);
    const early = [change(at, 2, 0), change(at, 3, 0.1)];
    await publish(at, ...early);
    await drain(at);
    await updateRegistration(at.api, at.companyId, at.webhookId, at.registrationId, { delayMinutes: DELAY });
    await publish(at, ...early, change(at, 4, 2), ...early, change(at, 5, 3));
    await drain(at);
    expect(at.posts).toHaveLength(3);
    expect(z.parse(Counted, JSON.parse(at.posts[2]?.body ?? "")).eventCount).toBe(2);
    expect(await expectReconciled(at)).toMatchObject({ matched: 3, delivered: 3 });
  });

  test("an event that another publisher sends without delay at the same time is not sent again", async () => {
    const at = await pipeline(0);
    await publish(at, change(at, 2, 0));
    await drain(at);
    const [sent] = await deliveries(at);
    await updateRegistration(at.api, at.companyId, at.webhookId, at.registrationId, { delayMinutes: DELAY });
    // The first read of the delivery finds nothing, as if another publisher had written the delivery after this read.
    const isHidden = new Set([keys.delivery(at.companyId, at.webhookId, sent?.id ?? "").sk]);
    const get: Table["get"] = async (key) => (isHidden.delete(key.sk) ? undefined : db.direct.get(key));
    await publishIn({ ...at.context, table: { ...db.direct, get } }, change(at, 2, 0));
    expect(isHidden.size).toBe(0);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1 });
  });

  test("a redelivery before the due time closes the window, and a later event opens the next one", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    const [delivery] = await deliveries(at);
    const key = keys.delivery(at.companyId, at.webhookId, delivery?.id ?? "");
    const now = new Date(START).toISOString();
    const item = await db.direct.write({ update: key, change: { set: { dueAt: now } } });
    expect(z.parse(StoredDelivery, item).dueAt).toBe(now);
    at.queue.splice(0, 1, ...at.queue.map((entry) => ({ ...entry, at: START })));
    await drain(at);
    await publish(at, change(at, 3, 1));
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2), names(3)]);
  });
});
