/** The signed-in user of a request (the caller), and which prospects this user may see. */
import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { PathId } from "#shared/schema.ts";

export interface Caller {
  readonly companyId: number;
  readonly userId: number;
  readonly role: Role;
  readonly permissions: readonly Permission[];
}

export const isAdmin = (caller: Caller): boolean => caller.role === "admin" || caller.role === "owner";

/** Admins and owners have every permission. */
export const may = (caller: Caller, permission: Permission): boolean =>
  isAdmin(caller) || caller.permissions.includes(permission);

export const effectivePermissions = (caller: Caller): Permission[] =>
  Permission.options.filter((permission) => may(caller, permission));

/**
 * Returns the caller's user id if the caller may see only assigned prospects, otherwise undefined. Use it for lists, for reads of one
 * prospect and for the conditions of writes.
 */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;

/**
 * Converts the caller to the authorizer's context, whose values are strings and never empty. Do not rename or redefine fields: API Gateway
 * caches contexts for a minute, so a new deployment receives those of the previous one.
 */
export const contextOf = ({ companyId, userId, role, permissions }: Caller) => ({
  companyId: `${companyId}`,
  userId: `${userId}`,
  rights: [role, ...permissions].join(" "),
});

const Rights = z.pipe(
  z.pipe(
    z.string(),
    z.transform((rights) => {
      const [role, ...permissions] = rights.split(" ");
      return { role, permissions };
    }),
  ),
  z.object({ role: Role, permissions: z.array(Permission) }),
);

/** Ignores fields that API Gateway has added. */
export const CallerContext = z.pipe(
  z.object({ companyId: PathId, userId: PathId, rights: Rights }),
  z.transform(({ rights, ...ids }): Caller => ({ ...ids, ...rights })),
);
