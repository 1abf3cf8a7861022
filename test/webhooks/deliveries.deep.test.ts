/**
 * Tests over HTTP that the delivery log shows every delivery, that redelivery, replay and resumption send old deliveries, which manual
 * triggers (actions) a user sees, and that a trigger makes one delivery.
 */
import { createHmac } from "node:crypto";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Delivery, NewRegistration, operations, ReplayRange } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "./subscribed.ts";

const as = await newTeam();

const OfProspect = z.object({ prospect: z.object({ name: z.string() }) });

type Query = NonNullable<operations["deliveriesList"]["parameters"]["query"]>;
const log = async (id: number, query: Query = {}) =>
  dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", { params: { path: { id }, query } }));
const one = (id: number, deliveryId: string) => ({ params: { path: { id, deliveryId } } });
const single = "/api/webhooks/{id}/deliveries/{deliveryId}";
const detail = async (id: number, deliveryId: string) => dataOf(await as.admin.GET(single, one(id, deliveryId)));
const again = "/api/webhooks/{id}/deliveries/{deliveryId}/redeliver";

const settled = (id: number, deliveryId: string, fields: Partial<Delivery>) =>
  expect.poll(() => detail(id, deliveryId)).toMatchObject(fields);

describe("the delivery log", () => {
  test("has every delivery once, newest first, on all pages and with each filter", async () => {
    const { receiver, webhook } = await subscribe(as.admin, ["prospect.created", "prospect.deleted"]);
    for (let i = 0; i < 12; i++) {
      const { id } = dataOf(await as.rep.POST("/api/prospects", { body: { name: `${i}` } }), 201);
      if (i % 3 === 0) await as.rep.DELETE("/api/prospects/{id}", at(id));
    }
    await receiver.untilDifferent(16);
    const whole = (await log(webhook.id, { limit: 500 })).items;
    const ids = whole.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted().toReversed());
    expect(new Set(ids)).toEqual(new Set(receiver.receipts.map(({ event }) => event.id)));

    const seen: string[] = [];
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const part = await log(webhook.id, { limit: 5, ...(cursor !== undefined && { cursor }) });
      expect(part.items.length).toBeLessThanOrEqual(5);
      seen.push(...part.items.map(({ id }) => id));
      cursor = part.nextCursor;
    }
    expect(seen).toEqual(ids);

    const deleted = await log(webhook.id, { event: "prospect.deleted", limit: 3 });
    expect(deleted.items).toHaveLength(3);
    const rest = await log(webhook.id, { event: "prospect.deleted", cursor: present(deleted.nextCursor) });
    expect(rest.items).toHaveLength(1);
    expect((await log(webhook.id, { status: "cancelled" })).items).toEqual([]);
    expect((await log(webhook.id, { event: "nothing" })).nextCursor).toBeNull();
    for (const query of ["cursor=x", "status=lost", "limit=0"]) {
      const path = `/api/webhooks/${webhook.id}/deliveries?${query}`;
      const [parameter] = query.split("=");
      expect(problemOf(await as.admin("GET", path), 400, "validation_failed")).toMatchObject([{ parameter }]);
    }
  });

  test("shows the exact body, and each attempt with the receiver's answer", async () => {
    const { receiver, webhook } = await subscribe(as.admin, ["prospect.created"], (_, response, count) => {
      response.statusCode = count === 1 ? 503 : 200;
      response.end(count === 1 ? "x".repeat(5_000) : "thanks");
    });
    dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada" } }), 201);
    await receiver.until(2);
    const { body, event } = present(receiver.receipts[0]);
    await settled(webhook.id, event.id, { status: "delivered" });
    const found = await detail(webhook.id, event.id);
    expect(found).toMatchObject({
      id: event.id,
      webhookId: webhook.id,
      event: "prospect.created",
      body,
      attemptCount: 2,
      nextAttemptAt: null,
      attempts: [
        { number: 1, status: 503, error: null, answer: "x".repeat(4_096) },
        { number: 2, status: 200, error: null, answer: "thanks" },
      ],
    });
    expect(JSON.stringify(found)).not.toContain(webhook.secretKey);
  });
});

describe("redelivering", () => {
  async function delivered() {
    const { receiver, webhook } = await subscribe(as.admin, ["prospect.created"]);
    dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada" } }), 201);
    await receiver.until(1);
    const { id } = present(receiver.receipts[0]).event;
    await settled(webhook.id, id, { status: "delivered" });
    return { receiver, webhook, id };
  }

  test("sends the same bytes under the same id with a new signature, as one more attempt", async () => {
    const { receiver, webhook, id } = await delivered();
    const queued = await as.admin.POST(again, one(webhook.id, id));
    expect(dataOf(queued, 202)).toEqual({ deliveryId: id });
    await receiver.until(2);
    await settled(webhook.id, id, { status: "delivered", attemptCount: 2 });
    const [first, second] = receiver.receipts;
    expect(second?.body).toBe(first?.body);
    expect(second?.headers["x-service-attempt"]).toBe("2");
    const expected = createHmac("sha256", webhook.secretKey).update(present(second).body).digest("hex");
    expect(second?.headers["x-service-signature"]).toBe(expected);
    expect((await log(webhook.id)).items).toMatchObject([{ id, status: "delivered", attemptCount: 2 }]);
  });

  test("is a conflict if the registration is deleted, and is not found for another company", async () => {
    const { webhook, id } = await delivered();
    problemOf(await as.otherOwner.POST(again, one(webhook.id, id)), 404, "not_found");
    problemOf(await as.otherOwner.GET(single, one(webhook.id, id)), 404, "not_found");
    for (const id of ["nonsense", "dlv_", `${"x".repeat(300)}`, "%00"]) {
      problemOf(await as.admin.POST(again, one(webhook.id, id)), 404, "not_found");
      problemOf(await as.admin.GET(single, one(webhook.id, id)), 404, "not_found");
    }
    problemOf(await as.admin.POST(again, one(webhook.id, `dlv_${"0".repeat(29)}`)), 404, "not_found");
    const place = { params: { path: { id: webhook.id, registrationId: present(webhook.registrations[0]).id } } };
    dataOf(await as.admin.DELETE("/api/webhooks/{id}/registrations/{registrationId}", place));
    problemOf(await as.admin.POST(again, one(webhook.id, id)), 409, "conflict");
  });
});

describe("a replay", () => {
  test("sends failed deliveries again, and delivered ones only on request", async () => {
    let isDown = true;
    const { receiver, webhook } = await subscribe(as.admin, ["prospect.created"], (_, response, count) => {
      response.statusCode = isDown && count > 1 ? 500 : 200;
      response.end();
    });
    const from = new Date(Date.now() - 1_000).toISOString();
    const received = () => new Set(receiver.receipts.map(({ event }) => event.id)).size;
    for (const [i, name] of ["first", "second", "third"].entries()) {
      dataOf(await as.rep.POST("/api/prospects", { body: { name } }), 201);
      // A received post may also be the retry of an older delivery, so `received` counts each delivery once.
      while (received() <= i) await receiver.until(receiver.receipts.length + 1);
    }
    const ids = receiver.receipts.map(({ event }) => event.id);
    const failed = ids.slice(1).filter((id, i, all) => all.indexOf(id) === i);
    // After the third attempt, the next retry comes half a minute later, and not during the replay.
    for (const id of failed) {
      await expect.poll(async () => (await detail(webhook.id, id)).attemptCount).toBeGreaterThanOrEqual(3);
    }
    isDown = false;
    const replay = (body: ReplayRange) => as.admin.POST("/api/webhooks/{id}/replay", { ...at(webhook.id), body });
    const before = receiver.receipts.length;
    expect(dataOf(await replay({ from }), 202)).toEqual({ count: 2 });
    await receiver.until(before + 2);
    for (const id of failed) await settled(webhook.id, id, { status: "delivered" });
    expect(new Set(receiver.receipts.slice(before).map(({ event }) => event.id))).toEqual(new Set(failed));
    expect(dataOf(await replay({ from }), 202)).toEqual({ count: 0 });
    const early = { from: "2020-01-01", to: "2020-01-02", deliveries: "all" } as const;
    expect(dataOf(await replay(early), 202)).toEqual({ count: 0 });
    expect(dataOf(await replay({ from, deliveries: "all" }), 202)).toEqual({ count: 3 });
    await receiver.until(before + 5);
    expect(new Set(receiver.receipts.map(({ body }) => body)).size).toBe(3);
  });

  test("needs a valid range", async () => {
    const { webhook } = await subscribe(as.admin, ["prospect.created"]);
    const path = `/api/webhooks/${webhook.id}/replay`;
    const from = "2026-06-01";
    for (const body of [{}, { from: "yesterday" }, { from, to: 7 }, { from, deliveries: "x" }]) {
      problemOf(await as.admin("POST", path, body), 400, "validation_failed");
    }
    const swapped = await as.admin("POST", path, { from: "2026-06-02", to: "2026-06-01" });
    const fault = { pointer: "/from", code: "too_big", message: "must not be later than `to`" };
    expect(problemOf(swapped, 400, "validation_failed")).toEqual([fault]);
    // If `to` is a day, it means the end of this day, so the range is valid.
    const body = { from: "2026-06-01T23:00:00Z", to: "2026-06-01" };
    dataOf(await as.admin.POST("/api/webhooks/{id}/replay", { ...at(webhook.id), body }), 202);
  });
});

test("a resumed webhook gets the deliveries of its pause", async () => {
  const { receiver, webhook } = await subscribe(as.admin, ["prospect.created"]);
  const status = async () => dataOf(await as.admin.GET("/api/webhooks/{id}", at(webhook.id))).status;
  const paused = dataOf(await as.admin.POST("/api/webhooks/{id}/pause", at(webhook.id)));
  expect(paused).toMatchObject({ id: webhook.id, status: "paused", registrations: webhook.registrations });
  expect(await status()).toBe("paused");
  const names = ["first", "second", "third"];
  for (const name of names) dataOf(await as.rep.POST("/api/prospects", { body: { name } }), 201);
  await expect.poll(async () => (await log(webhook.id, { status: "waiting" })).items).toHaveLength(3);
  expect(receiver.receipts).toEqual([]);
  expect(dataOf(await as.admin.POST("/api/webhooks/{id}/resume", at(webhook.id))).status).toBe("active");
  await receiver.until(3);
  // Deliveries that are resumed within the same second may arrive in any order.
  const sent = receiver.receipts.map(({ event }) => z.parse(OfProspect, event.data).prospect.name);
  expect(new Set(sent)).toEqual(new Set(names));
});

const manual = { triggerMode: "manual" } as const;

async function subscribed(registrations: NewRegistration[]) {
  const { receiver, webhook } = await subscribe(as.admin, registrations);
  return { receiver, webhook, ids: webhook.registrations.map(({ id }) => id) };
}

const actions = "/api/prospects/{id}/actions";
const action = "/api/prospects/{id}/actions/{registrationId}";
const of = (id: number, registrationId: number) => ({ params: { path: { id, registrationId } } });
const newProspect = async (name = uniqueName()) =>
  dataOf(await as.rep.POST("/api/prospects", { body: { name, source: "door" } }), 201);

describe("actions", () => {
  test("are the manual registrations whose filter the prospect meets, for every user who sees the prospect", async () => {
    const { ids } = await subscribed([
      { event: "prospect.status_changed", ...manual, manualTriggerButtonText: "Send to the CRM" },
      { event: "prospect.updated", ...manual, filter: { "prospect.source": "door", changedFields: null } },
      { event: "prospect.updated", ...manual, filter: { "prospect.source": "mail" } },
      { event: "prospect.updated" },
      { event: "anything", ...manual },
    ]);
    const { id } = await newProspect();
    const shown = [
      { registrationId: ids[0], label: "Send to the CRM", event: "prospect.status_changed" },
      { registrationId: ids[1], label: "prospect.updated", event: "prospect.updated" },
      { registrationId: ids[4], label: "anything", event: "anything" },
    ];
    for (const who of [as.rep, as.admin, as.owner]) expect(dataOf(await who.GET(actions, at(id)))).toEqual(shown);
    expect(dataOf(await as.rep.GET(actions, at((await newProspect()).id)))).toHaveLength(3);
  });

  test("send the current prospect and the user, signed and logged", async () => {
    const { receiver, webhook, ids } = await subscribed([{ event: "prospect.status_changed", ...manual }]);
    const made = await newProspect();
    const [registrationId = 0] = ids;
    const { deliveryId } = dataOf(await as.rep.POST(action, of(made.id, registrationId)), 202);
    await receiver.until(1);
    const { event, headers } = present(receiver.receipts[0]);
    const data = { prospect: made, previousStatus: null, newStatus: null, statusHistoryId: null, changedBy: null };
    expect(event).toMatchObject({
      id: deliveryId,
      event: "prospect.status_changed",
      companyId: webhook.companyId,
      webhookId: webhook.id,
      registrationId,
      trigger: "manual",
      triggeredBy: { email: as.rep.email },
      eventCount: 1,
    });
    expect(event.data).toEqual(data);
    expect(headers["x-service-delivery"]).toBe(deliveryId);
    const { items } = dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", at(webhook.id)));
    expect(items).toMatchObject([{ id: deliveryId, registrationId, trigger: "manual" }]);
  });

  test("cannot be triggered by a caller for whom the prospect has no such action", async () => {
    const { webhook, ids } = await subscribed([
      { event: "prospect.updated" },
      { event: "prospect.updated", ...manual, filter: { "prospect.source": "mail" } },
      { event: "prospect.updated", ...manual },
    ]);
    const [automatic = 0, unmet = 0, free = 0] = ids;
    const { id } = await newProspect();
    problemOf(await as.rep.POST(action, of(id, automatic)), 409, "conflict");
    problemOf(await as.rep.POST(action, of(id, unmet)), 409, "conflict");
    problemOf(await as.rep.POST(action, of(id, webhook.id)), 404, "not_found");
    await as.admin.DELETE("/api/webhooks/{id}/registrations/{registrationId}", of(webhook.id, free));
    problemOf(await as.rep.POST(action, of(id, free)), 404, "not_found");
    expect(dataOf(await as.rep.GET(actions, at(id)))).toEqual([]);
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", at(webhook.id))).items).toEqual([]);
  });

  test("send data that the catalogue's schema allows, for every event", async () => {
    const types = dataOf(await as.admin.GET("/api/webhooks/event-types"));
    const { receiver, ids } = await subscribed(types.map(({ event }) => ({ event, ...manual })));
    const { id } = await newProspect();
    for (const registrationId of ids) dataOf(await as.rep.POST(action, of(id, registrationId)), 202);
    await receiver.until(types.length);
    const ajv = addFormats.default(new Ajv2020({ strict: false }));
    const sent = receiver.receipts.map(({ event }) => event);
    expect(sent.map(({ event }) => event).toSorted()).toEqual(types.map(({ event }) => event).toSorted());
    for (const { event, description, schema } of types) {
      expect(description).toMatch(/^A[ n].*\.$/);
      const fits = ajv.compile(schema);
      const isFit = fits(sent.find((delivery) => delivery.event === event)?.data);
      expect(isFit, `${event}: ${ajv.errorsText(fits.errors)}`).toBe(true);
    }
  });
});
