/** POST /api/webhooks/{id}/rotate-secret: replaces the secret that signs the deliveries of a webhook. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { SecretChoice, WebhookWithSecret } from "#shared/webhooks/subscriptions/schema.ts";
import { rotateSecret } from "#shared/webhooks/subscriptions/write.ts";

useKeyService();

export const handler = command(
  {
    summary: "Rotate a webhook's secret",
    description:
      "This answer shows the new `secretKey` in full; later answers mask it. `standardWebhooksSecret` is the same key for the libraries of Standard Webhooks and Svix. If the body has no `secretKey`, the service creates one in the form of the old secret: `whsec_` and base64, or else a UUID. Your own secret must have at least 16 characters and must not consist of blanks only. For 24 hours the previous secret also signs: in `X-Service-Signature-Previous`, and as the second signature of `webhook-signature`.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    body: SecretChoice,
    status: 201,
    holdsSecret: true,
    response: WebhookWithSecret,
    collection: "/api/webhooks",
  },
  ({ context, caller, path, body }) => rotateSecret(context, caller.companyId, path.id, body),
);
