/** The signed-in user of a request, and the one visibility rule that every path uses. */
import type { Permission, Role } from "#shared/auth/user-schema.ts";

export interface Caller {
  readonly companyId: number;
  readonly userId: number;
  readonly role: Role;
  readonly permissions: readonly Permission[];
}

export const isAdmin = (caller: Caller): boolean => caller.role === "admin" || caller.role === "owner";

/** Admins and owners hold every permission. */
export const may = (caller: Caller, permission: Permission): boolean =>
  isAdmin(caller) || caller.permissions.includes(permission);

/**
 * Whose prospects the caller sees: `undefined` means all of the company, a user id means only those assigned to that
 * user. Filters, single reads and conditions of writes all come from this one answer.
 */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;
