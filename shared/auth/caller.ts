/** The signed-in user of a request (the caller), and which prospects this user may see. */
import * as z from "zod/mini";
import { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { PathId } from "#shared/schema.ts";

/** The rights of a service account are limited to those of the creator of the request's API key. */
export interface Caller {
  readonly companyId: number;
  readonly userId: number;
  readonly role: Role;
  readonly permissions: readonly Permission[];
  /** The API key of the request. Undefined for a person. */
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

export const common = (one: Rights, other: Rights): { role: Role; permissions: Permission[] } => ({
  role: isBelow(one.role, other.role) ? one.role : other.role,
  permissions: effectivePermissions(one).filter((permission) => may(other, permission)),
});

/** The caller may see only the prospects of this assignee. Undefined if the caller may see all. Lists, reads and writes must check it. */
export const visibleAssignee = (caller: Caller): number | undefined =>
  may(caller, "canViewAllProspects") ? undefined : caller.userId;

/** The caller as strings, which API Gateway passes to endpoints. It caches them for a minute, so a new release must understand old ones. */
export const contextOf = ({ companyId, userId, role, permissions, key }: Caller) => ({
  companyId: `${companyId}`,
  userId: `${userId}`,
  rights: [role, ...permissions].join(" "),
  ...(key !== undefined && { key: [key.id, ...key.scopes].join(" ") }),
});

const Words = z.pipe(
  z.string(),
  z.transform((text) => text.split(" ")),
);

/** Parses the authorizer's context (`contextOf`) to a caller. Ignores fields that API Gateway has added. */
export const CallerContext = z.pipe(
  z.object({
    companyId: PathId,
    userId: PathId,
    rights: z.pipe(Words, z.tuple([Role], Permission)),
    key: z.optional(z.pipe(Words, z.tuple([z.string()], Scope))),
  }),
  z.transform(({ rights: [role, ...permissions], key, ...ids }): Caller => {
    const [id, ...scopes] = key ?? [];
    return { ...ids, role, permissions, ...(id !== undefined && { key: { id, scopes } }) };
  }),
);
