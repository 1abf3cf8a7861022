/** GET /api/webhooks/event-types: which events there are, and the shape of their data. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { EventType, eventTypes } from "#shared/webhooks/events/event-types.ts";

export const handler = endpoint(
  {
    summary: "List event types",
    description:
      "Every event that a registration can name, with the JSON Schema of the `data` that it is delivered with.",
    tag: "Webhooks",
    allow: "admin",
    status: 200,
    response: z.array(EventType),
  },
  async () => eventTypes(),
);
