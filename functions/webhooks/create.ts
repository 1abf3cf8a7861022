/** POST /api/webhooks: a new receiver of events. */
import { endpoint } from "#shared/http/endpoint.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { createWebhook } from "#shared/webhooks/subscriptions/create.ts";
import { NewWebhook, Webhook } from "#shared/webhooks/subscriptions/schema.ts";

useKeyService();

export const handler = endpoint(
  {
    summary: "Create a webhook",
    description:
      "The url must be https and lead to public addresses only. This answer shows `secretKey` in full; it is not shown again. Without one in the body, a UUID is made; one of your own has at least 16 characters. At most 40 webhooks per company.",
    tag: "Webhooks",
    allow: "admin",
    body: NewWebhook,
    status: 201,
    holdsSecret: true,
    response: Webhook,
  },
  ({ context, caller, body }) => createWebhook(context, caller.companyId, body),
);
