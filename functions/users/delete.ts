/** DELETE /api/users/{id}: disables a user, or withdraws the invitation of a user who has not signed in yet. */
import { identityProvider } from "#shared/auth/identity-provider.ts";
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { untilJobsHaveRights } from "#shared/jobs/bulk/rights.ts";
import { disableOrWithdraw } from "#shared/reference/change-user.ts";

export const handler = command(
  {
    summary: "Disable a user",
    description:
      "Within a minute the service refuses every token of the user. The user's running job stops before the answer. Prospects and territories do not change. A pending invitation is withdrawn: the identity provider deletes the user, and the e-mail address can be invited again.",
    allow: "admin",
    scope: "users:manage",
    path: IdPath,
    response: Deleted,
  },
  async ({ context, caller, path }) => {
    const settled = () => untilJobsHaveRights(context, caller.companyId, path.id);
    try {
      const plan = await disableOrWithdraw(context, identityProvider(), caller, path.id);
      return { ...plan, after: () => Promise.all([plan.after?.(), settled()]) };
    } catch (error) {
      // Waits for the user's jobs after `not_found` too: if an earlier request has disabled the user, they may still have the old rights.
      await settled();
      throw error;
    }
  },
);
