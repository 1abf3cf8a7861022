/** The rules for who may create, change and disable users. */
import type { Caller } from "#shared/auth/caller.ts";
import type { Role, StoredUser } from "#shared/auth/user-schema.ts";
import type { Write } from "#shared/db/expression.ts";
import { all, equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";

const rank: Record<Role, number> = { sales: 0, admin: 1, owner: 2 };

/** Throws `permission_denied` if one of the roles is owner and the caller is not an owner. Only owners may manage owners. */
export function requireOwnerFor(caller: Caller, ...roles: readonly Role[]): void {
  if (caller.role !== "owner" && roles.includes("owner"))
    throw denied("Only an owner may create, change or disable an owner.");
}

/**
 * Throws if users disable themselves or lower their own role, so that a company keeps an owner. Also throws if callers change themselves
 * with a role that API Gateway has cached and that has been lowered meanwhile.
 */
export function requireNoSelfDemotion(caller: Caller, current: StoredUser, next: StoredUser): void {
  if (current.id !== caller.userId) return;
  if (!current.isActive || current.role !== caller.role) throw roleChanged();
  if (!next.isActive) throw new ApiError("conflict", "You cannot disable yourself.");
  if (rank[next.role] < rank[current.role]) throw new ApiError("conflict", "You cannot lower your own role.");
}

/**
 * The caller still has the cached role. Add this check to each transaction that changes another user, so that two owners cannot disable
 * each other.
 */
export const callerUnchanged = ({ companyId, userId, role }: Caller): Write => ({
  check: keys.user(companyId, userId),
  when: all(equals("role", role), equals("isActive", true)),
  orThrow: roleChanged,
});

const roleChanged = (): ApiError => denied("Your role has changed.");

const denied = (detail: string): ApiError => new ApiError("permission_denied", detail);
