/** DELETE /api/service-accounts/{id}/keys/{keyId}: revokes an API key. */
import { command } from "#shared/http/endpoint.ts";
import { revokeKey } from "#shared/reference/api-keys.ts";
import { KeyPath, RevokedKey } from "#shared/reference/service-account-schema.ts";

export const handler = command(
  {
    summary: "Revoke a key",
    description: "Within a minute the service refuses the key. Jobs that the key has begun stop.",
    path: KeyPath,
    response: RevokedKey,
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller, path }) => revokeKey(context, caller, path.id, path.keyId),
);
