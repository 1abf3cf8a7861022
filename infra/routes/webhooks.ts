/** Lists the routes of webhooks, their registrations and their deliveries. */
import { named, newIds } from "./access.ts";
import { get, LONG_WORK, patch, post, type Route, remove } from "./route.ts";

const registrationPath = "/api/webhooks/{id}/registrations";

export const webhookRoutes: readonly Route[] = [
  // The response can have 40 webhooks with 50 registrations each, and each registration can have a filter of 4 KB. So the response can
  // exceed the 6 MB of a response that is not streamed.
  get("/api/webhooks", "webhooks/list", { table: { webhooks: ["Query"] }, streamed: true }),
  post("/api/webhooks", "webhooks/create", {
    table: { ...newIds, webhooks: ["PutItem", "UpdateItem"], dataKeys: ["GetItem", "PutItem"] },
    secrets: "make",
    settings: ["WEBHOOK_URL_POLICY"],
  }),
  get("/api/webhooks/{id}", "webhooks/get", { table: { webhooks: ["Query"] } }),
  patch("/api/webhooks/{id}", "webhooks/update", {
    table: { webhooks: ["Query", "UpdateItem"] },
    settings: ["WEBHOOK_URL_POLICY"],
  }),
  // A company with a webhook already has a data key, so this function needs no right to create one.
  post("/api/webhooks/{id}/rotate-secret", "webhooks/rotate-secret", {
    table: { webhooks: ["Query", "UpdateItem"], dataKeys: ["GetItem"] },
    secrets: "sign",
  }),
  post("/api/webhooks/{id}/pause", "webhooks/pause", { table: { webhooks: ["Query", "UpdateItem"] } }),
  post("/api/webhooks/{id}/resume", "webhooks/resume", {
    table: { webhooks: ["Query", "UpdateItem"] },
    deliveryQueue: "send",
  }),
  post("/api/webhooks/{id}/test", "webhooks/test", {
    table: { ...named, webhooks: ["Query", "ConditionCheckItem"], deliveries: ["PutItem"] },
    deliveryQueue: "send",
    rate: LONG_WORK,
  }),
  post("/api/webhooks/{id}/replay", "webhooks/replay", {
    table: { webhooks: ["Query", "ConditionCheckItem"], deliveries: ["GetItem", "Query", "PutItem"] },
    deliveryQueue: "send",
    rate: LONG_WORK,
  }),
  // The event types are part of the code, so this route reads nothing from the table. It declares `table` only to get the variable
  // TABLE_NAME, which `endpoint` needs.
  get("/api/webhooks/event-types", "webhooks/event-types", { table: {} }),
  remove("/api/webhooks/{id}", "webhooks/delete", {
    table: { webhooks: ["Query", "UpdateItem", "DeleteItem"], deliveries: ["UpdateItem"] },
  }),
  get(registrationPath, "registrations/list", { table: { webhooks: ["Query"] } }),
  post(registrationPath, "registrations/create", { table: { ...newIds, webhooks: ["PutItem", "UpdateItem"] } }),
  get(`${registrationPath}/{registrationId}`, "registrations/get", { table: { webhooks: ["GetItem"] } }),
  patch(`${registrationPath}/{registrationId}`, "registrations/update", {
    table: { webhooks: ["GetItem", "UpdateItem"] },
  }),
  remove(`${registrationPath}/{registrationId}`, "registrations/delete", {
    table: { webhooks: ["UpdateItem", "DeleteItem"] },
  }),

  get("/api/webhooks/{id}/deliveries", "deliveries/list", { table: { webhooks: ["Query"], deliveries: ["Query"] } }),
  // The response contains the delivery's body of up to 1 MB, and all attempts with up to 4 KB of text each. Without streaming, Lambda
  // would put the JSON of the response into another JSON document. The texts would then be escaped twice, and could exceed Lambda's limit
  // of 6 MB.
  get("/api/webhooks/{id}/deliveries/{deliveryId}", "deliveries/get", {
    table: { webhooks: ["GetItem"], deliveries: ["BatchGetItem", "Query"] },
    streamed: true,
  }),
  post("/api/webhooks/{id}/deliveries/{deliveryId}/redeliver", "deliveries/redeliver", {
    table: { webhooks: ["GetItem", "ConditionCheckItem"], deliveries: ["GetItem", "UpdateItem"] },
    deliveryQueue: "send",
  }),
];
