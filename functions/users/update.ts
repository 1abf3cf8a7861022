/** PATCH /api/users/{id}: changes a user's name, role or permissions, or enables or disables the user. */
import { identityProvider } from "#shared/auth/identity-provider.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { untilJobsHaveRights } from "#shared/jobs/bulk/rights.ts";
import { changeUser } from "#shared/reference/change-user.ts";
import { User, UserPatch } from "#shared/reference/user.ts";

export const handler = command(
  {
    summary: "Change a user",
    description:
      "Only sent fields change. New rights take effect within a minute, and for the user's running job before the answer. Only owners can change an owner. Users cannot lower their own role or disable themselves. `isActive` enables a disabled user, or sends a new invitation if the previous one was withdrawn or has expired.",
    allow: "admin",
    scope: "users:manage",
    path: IdPath,
    body: UserPatch,
    response: User,
  },
  async ({ context, caller, path, body }) => {
    const plan = await changeUser(context, identityProvider(), caller, path.id, body);
    return {
      ...plan,
      after: () => Promise.all([plan.after?.(), untilJobsHaveRights(context, caller.companyId, path.id)]),
    };
  },
);
