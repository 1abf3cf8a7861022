/** PATCH /api/webhooks/{id}: changes the name or url of a webhook. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Webhook, WebhookPatch } from "#shared/webhooks/subscriptions/schema.ts";
import { updateWebhook } from "#shared/webhooks/subscriptions/write.ts";

export const handler = command(
  {
    summary: "Change a webhook",
    description:
      "Only sent fields change. Waiting deliveries go to the new url. The secret is masked. The service ignores `secretKey` here: `POST /api/webhooks/{id}/rotate-secret` replaces the secret.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    body: WebhookPatch,
    response: Webhook,
  },
  ({ context, caller, path, body }) => updateWebhook(context, caller.companyId, path.id, body),
);
