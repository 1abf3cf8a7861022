/** Who may make, change and disable whom in the user directory. */
import type { Caller } from "#shared/auth/caller.ts";
import type { Role, StoredUser } from "#shared/auth/user-schema.ts";
import { all, equals } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";

const rank: Record<Role, number> = { sales: 0, admin: 1, owner: 2 };

/** An owner is made, changed and disabled by owners only. */
export function requireOwnerFor(caller: Caller, ...roles: readonly Role[]): void {
  if (caller.role !== "owner" && roles.includes("owner")) throw denied("Only an owner may do this to an owner.");
}

/**
 * Nobody takes their own rights away: so whoever takes an owner's rights is an owner who stays. And nobody gives back to
 * themselves what was taken within the minute that a caller is kept.
 */
export function requireSoundSelf(caller: Caller, current: StoredUser, next: StoredUser): void {
  if (current.id !== caller.userId) return;
  if (!current.isActive || current.role !== caller.role) throw outOfOffice();
  if (!next.isActive) throw new ApiError("conflict", "Nobody can disable themselves.");
  if (rank[next.role] < rank[current.role]) throw new ApiError("conflict", "Nobody can lower their own role.");
}

/**
 * Goes into the transaction of a write about others: the caller's role is what the row says now, not what was kept for
 * a minute. Two owners who disable each other at once are thereby one too late.
 */
export const stillInOffice = ({ companyId, userId, role }: Caller): Write => ({
  check: keys.user(companyId, userId),
  when: all(equals("role", role), equals("isActive", true)),
});

export const outOfOffice = (): ApiError => denied("Your role has changed.");

const denied = (detail: string): ApiError => new ApiError("permission_denied", detail);
