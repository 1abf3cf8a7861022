/** The signed-in user of a request, and which prospects the user may see. */
import { Permission, type Role } from "#shared/auth/user-schema.ts";

export interface Caller {
  readonly companyId: number;
  readonly userId: number;
  readonly role: Role;
  readonly permissions: readonly Permission[];
}

export const isAdmin = (caller: Caller): boolean => caller.role === "admin" || caller.role === "owner";

/** Returns true if the caller has the permission. Admins and owners have every permission. */
export const may = (caller: Caller, permission: Permission): boolean =>
  isAdmin(caller) || caller.permissions.includes(permission);

export const effectivePermissions = (caller: Caller): Permission[] =>
  Permission.options.filter((permission) => may(caller, permission));

/**
 * Returns the caller's user id if the caller may see only prospects that are assigned to them. Returns undefined if the caller may see all
 * prospects of the company. Use this function for lists, for reads of one prospect and for the conditions of writes.
 */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;
