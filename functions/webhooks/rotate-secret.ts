/** POST /api/webhooks/{id}/rotate-secret: a new secret; the old one signs too for a day. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { SecretChoice, Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { rotateSecret } from "#shared/webhooks/subscriptions/update.ts";

useKeyService();

export const handler = endpoint(
  {
    summary: "Rotate a webhook's secret",
    description:
      "This answer shows the new `secretKey` in full; it is not shown again. Without one in the body, a UUID is made; one of your own has at least 16 characters. For 24 hours the old secret signs as well: in `X-Service-Signature-Previous`, and as the second signature of `webhook-signature`.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    body: SecretChoice,
    status: 201,
    holdsSecret: true,
    response: Webhook,
    collection: "/api/webhooks",
  },
  ({ context, caller, path, body }) => rotateSecret(context, caller.companyId, path.id, body),
);
