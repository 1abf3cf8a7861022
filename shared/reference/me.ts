/** Reads the signed-in user with the user's company and rights. */
import * as z from "zod/mini";
import { type Caller, effectivePermissions } from "#shared/auth/caller.ts";
import { Scope } from "#shared/auth/scopes.ts";
import { PERMISSIONS_TEXT, Permission, Role, StoredUser, UserSummary } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { explain } from "#shared/documentation.ts";
import { Company, StoredCompany } from "#shared/reference/schema.ts";
import { summaryOf } from "#shared/reference/users.ts";
import { named } from "#shared/schema.ts";

export const Me = named(
  "Me",
  z.object({
    user: UserSummary,
    company: Company,
    role: Role,
    permissions: z.array(Permission),
    scopes: z.optional(z.array(Scope)),
  }),
  "The caller. `permissions` are the effective ones: admins and owners hold all of them.",
);
export type Me = z.infer<typeof Me>;

/* @__PURE__ */ explain([Me], () => ({
  fields: { permissions: PERMISSIONS_TEXT, scopes: "What the API key may do. Absent for a person." },
}));

export async function readMe({ table }: ApiContext, caller: Caller): Promise<Me> {
  const [user, company] = await Promise.all([
    table.get(keys.user(caller.companyId, caller.userId)),
    table.get(keys.company(caller.companyId)),
  ]);
  return {
    user: summaryOf(StoredUser.parse(user)),
    company: StoredCompany.parse(company),
    role: caller.role,
    permissions: effectivePermissions(caller),
    ...(caller.key !== undefined && { scopes: [...caller.key.scopes] }),
  };
}
