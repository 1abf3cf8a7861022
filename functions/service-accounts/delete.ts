/** DELETE /api/service-accounts/{id}: deletes a service account with its keys. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { untilJobsHaveRights } from "#shared/jobs/bulk/rights.ts";
import { deleteAccount } from "#shared/reference/service-accounts.ts";

export const handler = command(
  {
    summary: "Delete a service account",
    description:
      "Within a minute the service refuses all keys of the account. Its running job stops before the answer. Records still show the account as their author.",
    path: IdPath,
    response: Deleted,
    allow: "admin",
    scope: "keys:manage",
  },
  async ({ context, caller, path }) => {
    const settled = () => untilJobsHaveRights(context, caller.companyId, path.id);
    try {
      return { ...(await deleteAccount(context, caller, path.id)), after: settled };
    } catch (error) {
      // After `not_found` too, the request waits for the account's jobs: an earlier request may have deleted the account, and a job may
      // still write with the old rights. If the account never existed, `settled` throws `not_found` too.
      await settled();
      throw error;
    }
  },
);
