/** A user as the interface of the directory shows and takes it. Apart from the stored shape, which every function that names users loads. */

import * as z from "zod/mini";
import { Permission, Role, userFields } from "#shared/auth/user-schema.ts";
import { limits } from "#shared/limits.ts";
import { Email, named, Timestamp, text } from "#shared/schema.ts";

export const InvitationState = z.enum(["pending", "accepted", "expired", "withdrawn"]);
export type InvitationState = z.infer<typeof InvitationState>;

export const User = named(
  "User",
  z.object({ ...userFields, invitation: InvitationState, invitationExpiresAt: z.nullable(Timestamp) }),
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
