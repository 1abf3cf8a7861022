/** POST /api/webhooks/{id}/resume: ends the pause of a webhook, so that the waiting deliveries are sent. */
import { deliveryQueue } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { resumeWebhook } from "#shared/webhooks/subscriptions/write.ts";

export const handler = command(
  {
    summary: "Resume a webhook",
    description: "The deliveries that waited are sent, oldest first, at ten a second in addition to new ones.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    response: Webhook,
  },
  ({ context, caller, path }) => resumeWebhook(context, deliveryQueue(), caller.companyId, path.id),
);
