/** GET /api/webhooks/{id}: reads one webhook. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { getWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = endpoint(
  {
    summary: "Get a webhook",
    description: "The answer includes the registrations. The secret is masked.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    response: Webhook,
  },
  ({ context, caller, path }) => getWebhook(context, caller.companyId, path.id),
);
