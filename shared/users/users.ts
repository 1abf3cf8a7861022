/** Reads the user directory of a company. */
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { keys } from "#shared/db/keys.ts";
import { notFound } from "#shared/http/problem.ts";
import { StoredUser, type UserSummary } from "#shared/users/schema.ts";
import type { World } from "#shared/world.ts";

/** All users of the company, the disabled ones included, in order of their ids. */
export async function listUsers({ table }: World, companyId: number): Promise<StoredUser[]> {
  const { users } = await loadDictionary(table, companyId);
  return [...users.values()];
}

export async function getUser({ table }: World, companyId: number, id: number): Promise<StoredUser> {
  const item = await table.get(keys.user(companyId, id));
  if (item === undefined) throw notFound("user");
  return StoredUser.parse(item);
}

/** May this user be given something? */
export async function isActiveUser({ table }: World, companyId: number, id: number): Promise<boolean> {
  const item = await table.get(keys.user(companyId, id));
  return item !== undefined && StoredUser.parse(item).isActive;
}

export function userSummary(user: StoredUser | undefined): UserSummary | null {
  if (user === undefined) return null;
  const { id, firstName, lastName, email } = user;
  return { id, firstName, lastName, email };
}

/** "First Last", as filters and CSV name a representative. */
export const fullName = (user: StoredUser): string => `${user.firstName} ${user.lastName}`.trim();
