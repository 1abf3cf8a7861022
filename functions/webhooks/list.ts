/** GET /api/webhooks: the company's webhooks with their registrations. */

import * as z from "zod/mini";
import { streamItems } from "#shared/http/stream-endpoint.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { listWebhooks } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = streamItems(
  {
    summary: "List webhooks",
    description: "With their registrations, newest first. Secrets are masked.",
    tag: "Webhooks",
    allow: "admin",
    status: 200,
    response: z.array(Webhook),
  },
  ({ context, caller }) => listWebhooks(context, caller.companyId),
);
