/** GET /api/service-accounts/{id}/keys: lists the API keys of a service account. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { listKeys } from "#shared/reference/api-keys.ts";
import { ApiKey } from "#shared/reference/service-account-schema.ts";

export const handler = endpoint(
  {
    summary: "List keys",
    description: "Without their secrets. The newest keys that have ended are in the list too.",
    path: IdPath,
    response: z.array(ApiKey),
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller, path }) => listKeys(context, caller.companyId, path.id),
);
