/** Reads the users of a company. */
import { StoredUser, type UserSummary } from "#shared/auth/user-schema.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { existing } from "#shared/errors.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";

export async function listUsers({ table }: ReadContext, companyId: number): Promise<StoredUser[]> {
  const { users } = await loadDictionary(table, companyId);
  return [...users.values()];
}

export async function getUser({ table }: ReadContext, companyId: number, id: number): Promise<StoredUser> {
  return StoredUser.parse(existing(await table.get(keys.user(companyId, id)), "user"));
}

export async function isActiveUser({ table }: ReadContext, companyId: number, id: number): Promise<boolean> {
  const item = await table.get(keys.user(companyId, id));
  return item !== undefined && StoredUser.parse(item).isActive;
}

export function summaryOf({ id, firstName, lastName, email, isService }: StoredUser): UserSummary {
  return { id, firstName, lastName, email, ...(isService && { type: "service" }) };
}

export const userSummary = (user: StoredUser | undefined): UserSummary | null =>
  user === undefined ? null : summaryOf(user);

export const fullName = (user: StoredUser): string => `${user.firstName} ${user.lastName}`.trim();
