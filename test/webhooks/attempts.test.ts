/**
 * Tests that the delivery log shows every attempt, and the write units of deliveries. The row of a delivery stores up to five successful
 * attempts with short answers. Every other attempt has a row of its own.
 */
import { expect, test } from "vitest";
import type { EventContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { deliveryItem, packedBody, unpackedBody } from "#shared/webhooks/delivery.ts";
import { cancel } from "#shared/webhooks/settle.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { redeliver, resumeWebhook, sendTestDelivery, startReplay } from "../harness/verbs.ts";
import { createdProspect, START } from "./fixtures.ts";
import { drain, newPipeline, type Pipeline, publish, sweepOwn } from "./pipeline.ts";
import { deliveries, expectReconciled, statesOf } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const only = async (at: Pipeline) => present((await deliveries(at))[0]);
/** Sends the delivery of the pipeline again, a minute later. */
async function again(at: Pipeline): Promise<void> {
  at.clock += 60_000;
  await redeliver(at.api, at.context.queue, at.companyId, at.webhookId, (await only(at)).id);
  await drain(at);
}

async function shown(at: Pipeline) {
  const { id } = await only(at);
  return readDelivery(at.api, at.companyId, at.webhookId, id);
}

async function rowsOf(at: Pipeline): Promise<unknown[]> {
  const { id } = await only(at);
  const { pk, sk } = keys.delivery(at.companyId, at.webhookId, id);
  const rows = await Array.fromAsync(db.direct.query({ pk, begins: sk }));
  return rows.flatMap(({ type, number }) => (type === "attempt" ? [number] : []));
}

test("the log shows one failure, one success and two redeliveries, each with its answer", async () => {
  const at = await newPipeline(db);
  const answers = ["down", "thanks", "x".repeat(101), "thanks again"];
  at.answers = (_, number) => ({ status: number === 1 ? 500 : 200, answer: answers[number - 1] ?? "" });
  await publish(at);
  await drain(at);
  for (let times = 0; times < 2; times++) await again(at);
  const { attempts, status, attemptCount } = await shown(at);
  expect({ status, attemptCount }).toEqual({ status: "delivered", attemptCount: 4 });
  expect(attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  expect(attempts.map(({ answer }) => answer)).toEqual(answers);
  expect(attempts.map((attempt) => attempt.status)).toEqual([500, 200, 200, 200]);
  expect(await rowsOf(at)).toEqual([1, 3]);
  expect(await expectReconciled(at)).toMatchObject({ delivered: 1, attempts: 4 });
});

test("the delivery's row holds at most five attempts, whatever the number of redeliveries", async () => {
  const at = await newPipeline(db);
  await publish(at);
  await drain(at);
  for (let times = 0; times < 8; times++) await again(at);
  expect((await only(at)).successes).toHaveLength(5);
  expect(await rowsOf(at)).toEqual([6, 7, 8, 9]);
  expect((await shown(at)).attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(await expectReconciled(at)).toMatchObject({ delivered: 1, attempts: 9 });
});

test("the log shows an attempt that ends after its delivery was cancelled", async () => {
  const at = await newPipeline(db);
  await publish(at);
  const { post } = at.context;
  const context = {
    ...at.context,
    post: async (sent: Parameters<typeof post>[0]) => {
      const exchange = await post(sent);
      await cancel(at.context, [await only(at)]);
      return exchange;
    },
  };
  await drain({ ...at, context });
  const { attempts, status } = await shown(at);
  expect(status).toBe("cancelled");
  expect(attempts).toMatchObject([{ number: 1, status: 200 }]);
  expect(await rowsOf(at)).toEqual([1]);
});

type Request = (at: Pipeline, queue: EventContext["queue"]) => Promise<unknown>;

/** Requests that make one delivery due immediately. */
const requests: Record<string, Request> = {
  redelivery: async (at, queue) => redeliver(at.api, queue, at.companyId, at.webhookId, (await only(at)).id),
  replay: (at, queue) => {
    const range = { from: new Date(START).toISOString(), deliveries: "all" } as const;
    return startReplay(at.api, queue, at.companyId, at.webhookId, range);
  },
  resumption: async (at, queue) => {
    await at.pause();
    await redeliver(at.api, at.context.queue, at.companyId, at.webhookId, (await only(at)).id);
    await drain(at);
    return resumeWebhook(at.api, queue, at.companyId, at.webhookId);
  },
  test: (at, queue) => sendTestDelivery(at.api, queue, at.caller, at.webhookId, "webhook.test"),
};

test.each(Object.entries(requests))(
  "a %s whose message the queue refuses is accepted, and the sweeper sends its one delivery",
  async (_, request) => {
    const at = await newPipeline(db);
    await publish(at);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    at.clock += 60_000;
    await request(at, { ...at.context.queue, send: () => Promise.reject(new Error("the queue fails")) });
    expect(at.queue).toEqual([]);
    at.clock += 60_000;
    expect(await sweepOwn(at)).toBe(1);
    await drain(at);
    expect(at.posts).toHaveLength(2);
    expect(new Set(await statesOf(at))).toEqual(new Set(["delivered"]));
    await expectReconciled(at);
  },
);

/** A prospect with all fields that a canvasser fills in. */
const filled = {
  name: "Ada Lovelace-Byron",
  phoneNumber: "+1 303 555 0134",
  emailAddress: "ada.lovelace@mail.example.com",
  lat: 39.739_235,
  lng: -104.990_25,
  address: {
    id: 123_456,
    address1: "1600 Pennsylvania Street",
    address2: "Apt 12",
    city: "Denver",
    state: "CO",
    zip: "80203",
    formattedAddress: "1600 Pennsylvania Street, Apt 12, Denver, CO 80203",
  },
  customFieldData: JSON.stringify({ roof: "shingle", storeys: 2, "last service": "2025-11-03" }),
};

test("a delivered event costs seven write units, even for a prospect with all its fields", async () => {
  for (const fields of [{}, filled]) {
    const at = await newPipeline(db);
    const change = { before: undefined, after: prospectItem({ ...createdProspect(at.companyId, 4_711), ...fields }) };
    const { usage } = await metered(async () => {
      await publish({ ...at, change });
      await drain(at);
    });
    expect(at.posts).toHaveLength(1);
    expect(await deliveries(at)).toMatchObject([{ state: "delivered" }]);
    expect(usage.writeUnits).toBe(7);
    expect(usage.readUnits).toBeLessThanOrEqual(8);
  }
});

test("a failed attempt costs eight more write units, including two for the health of its webhook", async () => {
  const at = await newPipeline(db);
  at.answers = (_, number) => ({ status: number === 1 ? 500 : 200 });
  const { usage } = await metered(async () => {
    await publish(at);
    await drain(at);
  });
  expect(at.posts).toHaveLength(2);
  // The failed attempt costs 6 write units: 2 for the row of the limiter, 1 for the row of the attempt, and 3 to schedule the next attempt.
  // One unit records that the webhook fails, and one that it has recovered. Without a failed attempt, the delivery costs 7 units.
  expect(usage.writeUnits).toBe(7 + 6 + 2);
});

test("a packed body is unpacked byte for byte", async () => {
  const at = await newPipeline(db);
  await publish(at);
  const delivery = await only(at);
  const body = present(delivery.body);
  const bytes = packedBody(body);
  expect(bytes.length).toBeLessThan(body.length / 2);
  for (const text of [body, "", "ä\u{1F600}\u2028", "x".repeat(100_000)]) {
    expect(unpackedBody(packedBody(text))).toBe(text);
  }
  expect(deliveryItem(delivery).body).toEqual(bytes);
  expect(() => unpackedBody(Buffer.of(9, 1, 2))).toThrow("not known");
});
