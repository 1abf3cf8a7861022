/** POST /api/service-accounts/{id}/keys: creates an API key for a service account. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import * as limits from "#shared/limits.ts";
import { createKey } from "#shared/reference/api-keys.ts";
import { ApiKeyWithSecret, NewApiKey } from "#shared/reference/service-account-schema.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";

useKeyService();

export const handler = command(
  {
    summary: "Create a key",
    description: `Only this answer shows the secret. Send the key as \`Authorization: Bearer\`. A key may do what its scopes, the role of its account and the role of its creator all permit. An account may have at most ${limits.keysPerAccount} keys.`,
    path: IdPath,
    body: NewApiKey,
    status: 201,
    holdsSecret: true,
    response: ApiKeyWithSecret,
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller, path, body }) => createKey(context, caller, path.id, body),
);
