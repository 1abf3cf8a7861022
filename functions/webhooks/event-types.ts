/** GET /api/webhooks/event-types: lists the event types, each with the JSON Schema of its data. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { EventType, eventTypes } from "#shared/webhooks/catalogue.ts";

export const handler = endpoint(
  {
    summary: "List event types",
    description:
      "Lists every event that a registration can name, each with the JSON Schema of the `data` of its deliveries.",
    allow: "admin",
    scope: "webhooks:manage",
    response: z.array(EventType),
  },
  async () => eventTypes(),
);
