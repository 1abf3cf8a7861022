/** The signed-in user of a request, and the one visibility rule that every path uses. */
import { Permission, type Role } from "#shared/auth/user-schema.ts";

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

/** The permissions that the caller holds, granted or by role. */
export const effectivePermissions = (caller: Caller): Permission[] =>
  Permission.options.filter((permission) => may(caller, permission));

/**
 * Whose prospects the caller sees: `undefined` means all of the company, a user id means only those assigned to that
 * user. Filters, single reads and conditions of writes all come from this one answer.
 */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;
