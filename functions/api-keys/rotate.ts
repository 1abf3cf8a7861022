/** POST /api/service-accounts/{id}/keys/{keyId}/rotate: replaces an API key by a new one. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { rotateKey } from "#shared/reference/api-keys.ts";
import { ApiKeyWithSecret, KeyPath, Rotation } from "#shared/reference/service-account-schema.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";

useKeyService();

export const handler = command(
  {
    summary: "Rotate a key",
    description: `Only this answer shows the secret of the new key. It has a new id, the same name and scopes, and the lifetime that the old one had. The old key works for \`overlapSeconds\`, at most ${limits.keyOverlapSeconds / 86_400} days. The caller answers for the new key.`,
    path: KeyPath,
    body: Rotation,
    status: 201,
    holdsSecret: true,
    response: ApiKeyWithSecret,
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller, path, body }) => rotateKey(context, caller, path.id, path.keyId, body),
);
