/** POST /api/webhooks: creates a webhook. */
import { command } from "#shared/http/endpoint.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { NewWebhook, WebhookWithSecret } from "#shared/webhooks/subscriptions/schema.ts";
import { createWebhook } from "#shared/webhooks/subscriptions/write.ts";

useKeyService();

export const handler = command(
  {
    summary: "Create a webhook",
    description:
      "The url must use https and resolve to public addresses only. This answer shows `secretKey` in full; later answers mask it. `standardWebhooksSecret` is the same key for the libraries of Standard Webhooks and Svix. If the body has no `secretKey`, the service creates a UUID. Your own secret must have at least 16 characters and must not consist of blanks only. A company can have at most 40 webhooks.",
    allow: "admin",
    scope: "webhooks:manage",
    body: NewWebhook,
    status: 201,
    holdsSecret: true,
    response: WebhookWithSecret,
  },
  ({ context, caller, body }) => createWebhook(context, caller.companyId, body),
);
