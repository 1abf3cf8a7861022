/** A user of the directory: who may sign in, for which company, with what rights. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Email, Id, named, Timestamp, text } from "#shared/schema.ts";

export const Role = z.enum(["sales", "admin", "owner"]);
export type Role = z.infer<typeof Role>;

export const Permission = z.enum(["canViewAllProspects", "canManageProspects"]);
export type Permission = z.infer<typeof Permission>;

/** As other records show a user. */
export const UserSummary = named(
  "UserSummary",
  z.object({ id: Id, firstName: z.string(), lastName: z.string(), email: z.string() }),
  "A user as other records show them.",
);
export type UserSummary = z.infer<typeof UserSummary>;

export const User = named(
  "User",
  z.object({
    id: Id,
    firstName: text(limits.name),
    lastName: text(limits.name),
    email: Email,
    role: Role,
    permissions: z.array(Permission),
    isActive: z.boolean(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  "A user of the company. A user who is not active cannot sign in.",
);
export type User = z.infer<typeof User>;

const Permissions = z.array(Permission).check(
  z.refine((list) => new Set(list).size === list.length, { error: "must hold each permission once" }),
  z.meta({ uniqueItems: true }),
);

/** OpenID Connect Core, section 2: at most 255 ASCII characters, compared as they are. */
const Subject = z
  .string()
  .check(z.minLength(1), z.maxLength(limits.subject), z.regex(/^[\x20-\x7e]*$/, "must be printable ASCII"));

export const NewUser = named(
  "NewUser",
  z.object({
    email: Email,
    firstName: text(limits.name, 1),
    lastName: text(limits.name),
    role: Role,
    permissions: z._default(Permissions, []),
    sub: z.optional(Subject),
  }),
  "A new user. `sub` is the subject that the user's access tokens name: for deployments whose issuer is not their own user pool, refused by others.",
);
export type NewUser = z.output<typeof NewUser>;

export const UserPatch = named(
  "UserPatch",
  z.object({
    firstName: z.optional(text(limits.name, 1)),
    lastName: z.optional(text(limits.name)),
    role: z.optional(Role),
    permissions: z.optional(Permissions),
    isActive: z.optional(z.boolean()),
  }),
  "Only sent fields change. An e-mail address cannot be changed.",
);
export type UserPatch = z.output<typeof UserPatch>;

/** What a sign-in looks at. It stands in the user's row and beside the place of the token subject, written together. */
export const UserRights = z.pick(User, { role: true, permissions: true, isActive: true });
export type UserRights = z.infer<typeof UserRights>;

/** As the table holds it. `sub` is the identity provider's name for the user. */
export const StoredUser = z.extend(User, { type: z.literal("user"), companyId: Id, sub: z.string(), version: z.int() });
export type StoredUser = z.infer<typeof StoredUser>;
