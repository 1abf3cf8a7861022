/** Lists the routes of webhooks, their registrations and their deliveries. */
import { named, newIds } from "./access.ts";
import { LONG_WORK } from "./prospects.ts";
import type { Route } from "./route.ts";

const registrationPath = "/api/webhooks/{id}/registrations";

export const webhookRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/webhooks",
    file: "webhooks/list",
    access: { table: { webhooks: ["Query"] } },
    // The response can have 40 webhooks with 50 registrations each, and each registration can have a filter of 4 KB. So the response can
    // exceed the 6 MB of a response that is not streamed.
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/webhooks",
    file: "webhooks/create",
    access: {
      table: { ...newIds, webhooks: ["PutItem", "UpdateItem"], dataKeys: ["GetItem", "PutItem"] },
      secrets: "make",
      settings: ["WEBHOOK_URL_POLICY"],
    },
  },
  {
    method: "GET",
    path: "/api/webhooks/{id}",
    file: "webhooks/get",
    access: { table: { webhooks: ["Query"] } },
  },
  {
    method: "PATCH",
    path: "/api/webhooks/{id}",
    file: "webhooks/update",
    access: { table: { webhooks: ["Query", "UpdateItem"] }, settings: ["WEBHOOK_URL_POLICY"] },
  },
  {
    method: "POST",
    path: "/api/webhooks/{id}/rotate-secret",
    file: "webhooks/rotate-secret",
    access: {
      // A company with a webhook has a data key.
      table: { webhooks: ["Query", "UpdateItem"], dataKeys: ["GetItem"] },
      secrets: "sign",
    },
  },
  {
    method: "POST",
    path: "/api/webhooks/{id}/pause",
    file: "webhooks/pause",
    access: { table: { webhooks: ["Query", "UpdateItem"] } },
  },
  {
    method: "POST",
    path: "/api/webhooks/{id}/resume",
    file: "webhooks/resume",
    access: { table: { webhooks: ["Query", "UpdateItem"] }, deliveryQueue: "send" },
  },
  {
    method: "POST",
    path: "/api/webhooks/{id}/test",
    file: "webhooks/test",
    access: {
      table: { ...named, webhooks: ["Query", "ConditionCheckItem"], deliveries: ["PutItem"] },
      deliveryQueue: "send",
    },
    rate: LONG_WORK,
  },
  {
    method: "POST",
    path: "/api/webhooks/{id}/replay",
    file: "webhooks/replay",
    access: {
      table: { webhooks: ["Query", "ConditionCheckItem"], deliveries: ["GetItem", "Query", "PutItem"] },
      deliveryQueue: "send",
    },
    rate: LONG_WORK,
  },
  // The event types are part of the code, so this route reads nothing from the table. It declares `table` only to get the variable
  // TABLE_NAME, which `endpoint` needs.
  { method: "GET", path: "/api/webhooks/event-types", file: "webhooks/event-types", access: { table: {} } },
  {
    method: "DELETE",
    path: "/api/webhooks/{id}",
    file: "webhooks/delete",
    access: {
      table: { webhooks: ["Query", "UpdateItem", "DeleteItem"], deliveries: ["UpdateItem"] },
    },
  },
  {
    method: "GET",
    path: registrationPath,
    file: "registrations/list",
    access: { table: { webhooks: ["Query"] } },
  },
  {
    method: "POST",
    path: registrationPath,
    file: "registrations/create",
    access: { table: { ...newIds, webhooks: ["PutItem", "UpdateItem"] } },
  },
  {
    method: "GET",
    path: `${registrationPath}/{registrationId}`,
    file: "registrations/get",
    access: { table: { webhooks: ["GetItem"] } },
  },
  {
    method: "PATCH",
    path: `${registrationPath}/{registrationId}`,
    file: "registrations/update",
    access: { table: { webhooks: ["GetItem", "UpdateItem"] } },
  },
  {
    method: "DELETE",
    path: `${registrationPath}/{registrationId}`,
    file: "registrations/delete",
    access: { table: { webhooks: ["UpdateItem", "DeleteItem"] } },
  },

  {
    method: "GET",
    path: "/api/webhooks/{id}/deliveries",
    file: "deliveries/list",
    access: { table: { webhooks: ["Query"], deliveries: ["Query"] } },
  },
  {
    method: "GET",
    path: "/api/webhooks/{id}/deliveries/{deliveryId}",
    file: "deliveries/get",
    access: { table: { webhooks: ["GetItem"], deliveries: ["BatchGetItem", "Query"] } },
    // The response contains the delivery's body of up to 1 MB, and all attempts with up to 4 KB of text each. Without streaming, Lambda
    // would put the JSON of the response into another JSON document. The texts would then be escaped twice, and could exceed Lambda's limit
    // of 6 MB.
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/webhooks/{id}/deliveries/{deliveryId}/redeliver",
    file: "deliveries/redeliver",
    access: {
      table: { webhooks: ["GetItem", "ConditionCheckItem"], deliveries: ["GetItem", "UpdateItem"] },
      deliveryQueue: "send",
    },
  },
];
