/**
 * The signed-in user of a request (the caller), and which prospects this user may see. The authorizer passes the caller to the functions.
 * `contextOf` and `CallerContext` convert the caller to and from the form in which it is passed.
 */
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

/**
 * Converts the caller to the authorizer's context. API Gateway converts each value of the context to a string, and no value may be empty.
 * `rights` contains the role and then the permissions, separated by spaces. You may add fields, but you may not rename or redefine them:
 * API Gateway caches contexts for a minute, so a new deployment still receives contexts that the previous deployment has made.
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

/** Parses the context that `contextOf` has made. Fields that API Gateway has added are ignored. */
export const CallerContext = z.pipe(
  z.object({ companyId: PathId, userId: PathId, rights: Rights }),
  z.transform(({ rights, ...ids }): Caller => ({ ...ids, ...rights })),
);
