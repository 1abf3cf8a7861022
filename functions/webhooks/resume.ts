/** POST /api/webhooks/{id}/resume: a webhook goes on, and what was kept is sent. */

import { deliveryQueue } from "#shared/aws/queue.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { resumeWebhook } from "#shared/webhooks/deliver/pause.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = endpoint(
  {
    summary: "Resume a webhook",
    description: "What was kept is sent, oldest first, ten deliveries in a second beside what is new.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    status: 200,
    response: Webhook,
  },
  ({ context, caller, path }) => resumeWebhook(context, deliveryQueue(), caller.companyId, path.id),
);
