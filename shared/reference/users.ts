/** Reads the users of a company, and the signed-in user with the user's rights. */

import * as z from "zod/mini";
import { type Caller, effectivePermissions } from "#shared/auth/caller.ts";
import { PERMISSIONS_TEXT, Permission, Role, StoredUser, UserSummary } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { explain } from "#shared/documentation.ts";
import { notFound } from "#shared/errors.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { Company, StoredCompany } from "#shared/reference/schema.ts";
import { named } from "#shared/schema.ts";

/** Returns all users of the company by id, including disabled ones. */
export async function listUsers({ table }: ApiContext, companyId: number): Promise<StoredUser[]> {
  const { users } = await loadDictionary(table, companyId);
  return [...users.values()];
}

export async function getUser({ table }: ApiContext, companyId: number, id: number): Promise<StoredUser> {
  const item = await table.get(keys.user(companyId, id));
  if (item === undefined) throw notFound("user");
  return StoredUser.parse(item);
}

/** Whether prospects and territories may be assigned to the user. */
export async function isActiveUser({ table }: ApiContext, companyId: number, id: number): Promise<boolean> {
  const item = await table.get(keys.user(companyId, id));
  return item !== undefined && StoredUser.parse(item).isActive;
}

export function userSummary(user: StoredUser | undefined): UserSummary | null {
  if (user === undefined) return null;
  const { id, firstName, lastName, email } = user;
  return { id, firstName, lastName, email };
}

/** First and last name, as filters and CSV files name a rep. */
export const fullName = (user: StoredUser): string => `${user.firstName} ${user.lastName}`.trim();

export const Me = named(
  "Me",
  z.object({ user: UserSummary, company: Company, role: Role, permissions: z.array(Permission) }),
  "The caller. `permissions` are the effective ones: admins and owners hold all of them.",
);
export type Me = z.infer<typeof Me>;

/* @__PURE__ */ explain([Me], () => ({ fields: { permissions: PERMISSIONS_TEXT } }));

export async function readMe({ table }: ApiContext, caller: Caller): Promise<Me> {
  const [user, company] = await Promise.all([
    table.get(keys.user(caller.companyId, caller.userId)),
    table.get(keys.company(caller.companyId)),
  ]);
  return {
    user: StoredUser.parse(user),
    company: StoredCompany.parse(company),
    role: caller.role,
    permissions: effectivePermissions(caller),
  };
}
