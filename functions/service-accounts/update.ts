/** PATCH /api/service-accounts/{id}: changes a service account's name, role or permissions. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { untilJobsHaveRights } from "#shared/jobs/bulk/rights.ts";
import { ServiceAccount, ServiceAccountPatch } from "#shared/reference/service-account-schema.ts";
import { changeAccount } from "#shared/reference/service-accounts.ts";

export const handler = command(
  {
    summary: "Change a service account",
    description:
      "Only sent fields change. New rights take effect within a minute, and for a running job of the account before the answer. Only owners can change an account with the role owner.",
    path: IdPath,
    body: ServiceAccountPatch,
    response: ServiceAccount,
    allow: "admin",
    scope: "keys:manage",
  },
  async ({ context, caller, path, body }) => {
    const plan = await changeAccount(context, caller, path.id, body);
    return { ...plan, after: () => untilJobsHaveRights(context, caller.companyId, path.id) };
  },
);
