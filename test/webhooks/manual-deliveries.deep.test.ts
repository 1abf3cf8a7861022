/** Tests over HTTP which manual triggers (actions) a user sees, and that a trigger makes one delivery. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import type { NewRegistration } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import type { Behaviour } from "../harness/receiver.ts";
import { dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "./subscribed.ts";

const as = await newTeam();

const manual = { triggerMode: "manual" } as const;

async function subscribed(registrations: NewRegistration[], behave?: Behaviour) {
  const { receiver, webhook } = await subscribe(as.admin, registrations, behave);
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
