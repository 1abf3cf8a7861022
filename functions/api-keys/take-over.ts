/** POST /api/service-accounts/{id}/keys/{keyId}/take-over: makes the caller responsible for an API key, in place of the key's creator. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { takeOverKey } from "#shared/reference/api-keys.ts";
import { ApiKey, KeyPath } from "#shared/reference/service-account-schema.ts";

export const handler = command(
  {
    summary: "Take over a key",
    description: `The secret stays the same. When the creator of a key is disabled or gets a lower role, the key keeps at most the rights of that role, and ends after ${limits.orphanedKeyMs / 86_400_000} days. It then works on only if another admin takes it over. The key may then do at most what this admin may do.`,
    path: KeyPath,
    response: ApiKey,
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller, path }) => takeOverKey(context, caller, path.id, path.keyId),
);
