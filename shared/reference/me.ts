/** What a signed-in user may know of itself: user, company, role and permissions. */

import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { Permission, Role, StoredUser, UserSummary } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { Company, StoredCompany } from "#shared/reference/company-schema.ts";
import { named } from "#shared/schema.ts";

export const Me = named(
  "Me",
  z.object({ user: UserSummary, company: Company, role: Role, permissions: z.array(Permission) }),
  "The caller. Admins and owners hold every permission whether listed or not.",
);
export type Me = z.infer<typeof Me>;

export async function readMe({ table }: ApiContext, caller: Caller): Promise<Me> {
  const [user, company] = await Promise.all([
    table.get(keys.user(caller.companyId, caller.userId)),
    table.get(keys.company(caller.companyId)),
  ]);
  return {
    user: StoredUser.parse(user),
    company: StoredCompany.parse(company),
    role: caller.role,
    permissions: [...caller.permissions],
  };
}
