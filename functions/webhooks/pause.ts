/** POST /api/webhooks/{id}/pause: a webhook keeps what is for it from now on. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { pauseWebhook } from "#shared/webhooks/deliver/pause.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = endpoint(
  {
    summary: "Pause a webhook",
    description:
      "No attempt is made while it is paused; events are kept for 30 days and sent when it is resumed. A receiver that answers 410, or of which no attempt succeeds for five days, is paused by itself.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    status: 200,
    response: Webhook,
  },
  ({ context, caller, path }) => pauseWebhook(context, caller.companyId, path.id),
);
