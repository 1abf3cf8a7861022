/** The signed-in user of a request: how the authorizer passes the user to the functions, and which prospects the user may see. */
import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { Id, PathId } from "#shared/schema.ts";

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
 * Returns the user id whose assigned prospects the caller may see, or undefined if the caller may see all prospects of the company. Lists,
 * single reads and write conditions all use this function.
 */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;

const ParsedCaller = z.object({ companyId: Id, userId: Id, role: Role, permissions: z.array(Permission) });

/**
 * Converts the caller to the authorizer's context and back. API Gateway turns each value of the context into text, and no value may be
 * empty. Add fields if necessary, but never change one. The gateway caches contexts for a minute, so a new deployment receives contexts of
 * the previous one.
 */
export const CallerContext = z.codec(
  z.object({
    companyId: z.string(),
    userId: z.string(),
    /** The role and then the permissions, separated by spaces. */
    rights: z.string(),
  }),
  ParsedCaller,
  {
    decode: ({ companyId, userId, rights }, { issues }) => {
      const [role, ...permissions] = rights.split(" ");
      const ids = z.safeParse(z.object({ companyId: PathId, userId: PathId }), { companyId, userId });
      const granted = z.safeParse(z.object({ role: Role, permissions: z.array(Permission) }), { role, permissions });
      if (ids.success && granted.success) return { ...ids.data, ...granted.data };
      issues.push({ code: "custom", message: "is not a caller", input: { companyId, userId, rights } });
      return z.NEVER;
    },
    encode: ({ companyId, userId, role, permissions }) => ({
      companyId: `${companyId}`,
      userId: `${userId}`,
      rights: [role, ...permissions].join(" "),
    }),
  },
);
