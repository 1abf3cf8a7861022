/** POST /api/webhooks/{id}/pause: pauses a webhook. Its deliveries wait until the webhook is resumed. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { pauseWebhook } from "#shared/webhooks/subscriptions/write.ts";

export const handler = command(
  {
    summary: "Pause a webhook",
    description:
      "A paused webhook makes no attempts. Its deliveries are kept for 30 days and sent when it is resumed. The service also pauses a webhook whose receiver answers 410, or with no successful attempt for five days.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    response: Webhook,
  },
  ({ context, caller, path }) => pauseWebhook(context, caller.companyId, path.id),
);
