/** Tests the samples of events: as test deliveries, and as the examples of `webhooks` in the OpenAPI document. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { EventName } from "#shared/webhooks/catalogue.ts";
import { OPENAPI_FILE } from "../../infra/build/bundle.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createWebhook, pauseWebhook, resumeWebhook, sendTestDelivery } from "../harness/verbs.ts";
import { at } from "../infra/template.ts";
import { automatic } from "./fixtures.ts";
import { drain, newPipeline } from "./pipeline.ts";
import { deliveries, expectReconciled } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const document: unknown = JSON.parse(readFileSync(OPENAPI_FILE, "utf8"));
const ajv = addFormats.default(new Ajv2020({ strict: false }));
ajv.addSchema({ $id: "document", components: at(document, "components") }, "document");

const contentOf = (event: string) =>
  at(document, "webhooks", event, "post", "requestBody", "content", "application/json");

function faultsIn(event: string, body: unknown): unknown {
  const name = String(at(contentOf(event), "schema", "$ref"))
    .split("/")
    .at(-1);
  const fits = ajv.compile({ $ref: `document#/components/schemas/${name}` });
  return fits(body) ? [] : fits.errors;
}

test("the OpenAPI document has each event of the catalogue, with an example of a whole body that its schema accepts", () => {
  expect(Object.keys(at(document, "webhooks") ?? {})).toEqual(EventName.options);
  for (const event of EventName.options) {
    const example = at(contentOf(event), "example");
    expect(faultsIn(event, example), event).toEqual([]);
    expect(example).toMatchObject({ event, eventCount: 1, data: expect.any(Object) });
    expect(at(example, "test"), event).toBe(event === "webhook.test" ? true : undefined);
    expect(faultsIn(event, Object.assign({}, example, { data: {} })), event).not.toEqual([]);
  }
});

const SECRET = "a secret of the test";
const URL = "http://127.0.0.1:2/";

/** Adds a webhook whose registrations have a filter that matches nothing, and a delay that is longer than the test. */
async function newReceiver(events: readonly string[]) {
  const pipeline = await newPipeline(db);
  const { api, caller } = pipeline;
  const filter = { "prospect.name": "nobody" };
  const registrations = events.map((name) => ({ ...automatic(name, 1_000), filter }));
  const input = { name: "CRM", url: URL, secretKey: SECRET, registrations };
  const webhook = await createWebhook(api, pipeline.companyId, input);
  const send = (name: EventName) => sendTestDelivery(api, pipeline.context.queue, caller, webhook.id, name);
  return { pipeline, webhook, userId: caller.userId, send };
}

test("a sample of each event goes to this webhook alone, at once and signed, whatever its registration's filter and delay are", async () => {
  const events = EventName.options.filter((event) => !event.startsWith("territory."));
  const { pipeline, webhook, userId, send } = await newReceiver(events);
  for (const event of EventName.options) {
    const { deliveryId } = await send(event);
    const sentAt = pipeline.clock;
    await drain(pipeline);
    expect(pipeline.clock, event).toBe(sentAt);
    const { url, body, headers } = pipeline.posts.splice(0)[0] ?? { url: "", body: "", headers: {} };
    expect(pipeline.posts, event).toEqual([]);
    expect(url).toBe(URL);
    const sent: unknown = JSON.parse(body);
    const registrationId = webhook.registrations.find((one) => one.event === event)?.id ?? null;
    expect(sent).toMatchObject({ id: deliveryId, event, test: true, webhookId: webhook.id, registrationId });
    expect(sent).toMatchObject({ trigger: "manual", triggeredBy: { id: userId } });
    expect(faultsIn(event, sent), event).toEqual([]);
    expect(headers).toMatchObject({
      "X-Service-Event": event,
      "X-Service-Signature": createHmac("sha256", SECRET).update(body).digest("hex"),
    });
    if (event === "webhook.test") expect(at(sent, "data")).toEqual({ webhook: { id: webhook.id, name: "CRM" } });
    else expect(at(sent, "data"), event).toEqual(at(contentOf(event), "example", "data"));
  }
  expect(await deliveries(pipeline)).toEqual([]);
  expect(await deliveries({ ...pipeline, webhookId: webhook.id })).toHaveLength(EventName.options.length);
  await expectReconciled(pipeline);
});

test("a paused webhook gets a sample when it is resumed", async () => {
  const { pipeline, webhook, send } = await newReceiver([]);
  const { companyId, api } = pipeline;
  await pauseWebhook(api, companyId, webhook.id);
  const { deliveryId } = await send("note.created");
  await drain(pipeline);
  expect(pipeline.posts).toEqual([]);
  await resumeWebhook(api, pipeline.context.queue, companyId, webhook.id);
  await drain(pipeline);
  const sample = { id: deliveryId, event: "note.created", registrationId: null, test: true };
  expect(pipeline.posts.map(({ body }) => JSON.parse(body))).toMatchObject([sample]);
});
