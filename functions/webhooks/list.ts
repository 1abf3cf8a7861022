/** GET /api/webhooks: lists the company's webhooks. */
import * as z from "zod/mini";
import { streamItems } from "#shared/http/streaming.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { listWebhooks } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = streamItems(
  {
    summary: "List webhooks",
    description: "Newest first, each with its registrations. Secrets are masked.",
    allow: "admin",
    scope: "webhooks:manage",
    response: z.array(Webhook),
  },
  ({ context, caller }) => listWebhooks(context, caller.companyId),
);
