/** The signed-in user of a request (the caller), and which prospects this user may see. */
import * as z from "zod/mini";
import { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { PathId } from "#shared/schema.ts";

/**
 * A person, or a service account with the API key of the request. `role` and `permissions` of a service account are limited to those of the
 * key's creator.
 */
export interface Caller {
  readonly companyId: number;
  readonly userId: number;
  readonly role: Role;
  readonly permissions: readonly Permission[];
  /** Undefined for a person. */
  readonly key?: { readonly id: string; readonly scopes: readonly Scope[] } | undefined;
}

export type Rights = Pick<Caller, "role" | "permissions">;

export const isAdmin = (caller: Rights): boolean => caller.role === "admin" || caller.role === "owner";

/** Admins and owners have every permission. */
export const may = (caller: Rights, permission: Permission): boolean =>
  isAdmin(caller) || caller.permissions.includes(permission);

export const effectivePermissions = (caller: Rights): Permission[] =>
  Permission.options.filter((permission) => may(caller, permission));

const rank: Record<Role, number> = { sales: 0, admin: 1, owner: 2 };

export const isBelow = (role: Role, other: Role): boolean => rank[role] < rank[other];

/** Returns the rights that `one` and `other` have in common. */
export const common = (one: Rights, other: Rights): { role: Role; permissions: Permission[] } => ({
  role: isBelow(one.role, other.role) ? one.role : other.role,
  permissions: effectivePermissions(one).filter((permission) => may(other, permission)),
});

/**
 * Returns the caller's user id if the caller may see only assigned prospects, otherwise undefined. Use it for lists, for reads of one
 * prospect and for the conditions of writes.
 */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;

/**
 * Converts the caller to the authorizer's context, whose values are strings and never empty. Do not rename or redefine fields: API Gateway
 * caches contexts for a minute, so a new release receives contexts of the previous one.
 */
export const contextOf = ({ companyId, userId, role, permissions, key }: Caller) => ({
  companyId: `${companyId}`,
  userId: `${userId}`,
  rights: [role, ...permissions].join(" "),
  ...(key !== undefined && { key: [key.id, ...key.scopes].join(" ") }),
});

const RightsText = z.pipe(
  z.pipe(
    z.string(),
    z.transform((rights) => {
      const [role, ...permissions] = rights.split(" ");
      return { role, permissions };
    }),
  ),
  z.object({ role: Role, permissions: z.array(Permission) }),
);

const KeyText = z.pipe(
  z.pipe(
    z.string(),
    z.transform((key) => {
      const [id, ...scopes] = key.split(" ");
      return { id, scopes };
    }),
  ),
  z.object({ id: z.string(), scopes: z.array(Scope) }),
);

/** Parses the authorizer's context (`contextOf`) to a caller. Ignores fields that API Gateway has added. */
export const CallerContext = z.pipe(
  z.object({ companyId: PathId, userId: PathId, rights: RightsText, key: z.optional(KeyText) }),
  z.transform(({ rights, ...ids }): Caller => ({ ...ids, ...rights })),
);
