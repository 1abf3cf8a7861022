/** GET /api/service-accounts/{id}: reads a service account. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { ServiceAccount } from "#shared/reference/service-account-schema.ts";
import { getAccount } from "#shared/reference/service-accounts.ts";

export const handler = endpoint(
  { summary: "Get a service account", path: IdPath, response: ServiceAccount, allow: "admin", scope: "keys:manage" },
  ({ context, caller, path }) => getAccount(context, caller.companyId, path.id),
);
