/** The schemas of a user. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { atMost, Id, named, Timestamp, text } from "#shared/schema.ts";

export const Role = named("Role", z.enum(["sales", "admin", "owner"]), "What a user is in the company.");
export type Role = z.infer<typeof Role>;

export const Permission = named(
  "Permission",
  z.enum(["canViewAllProspects", "canManageProspects"]),
  "A right that a sales user may have in addition.",
);
export type Permission = z.infer<typeof Permission>;

export const UserType = named("UserType", z.enum(["service"]), "The kind of a user who is not a person.");

export const UserSummary = named(
  "UserSummary",
  z.object({
    id: Id,
    firstName: z.string(),
    lastName: z.string(),
    email: z.string(),
    type: z.optional(UserType),
  }),
  "A user as other records show them.",
);
export type UserSummary = z.infer<typeof UserSummary>;

export const EMAIL_TEXT =
  "Unique in the whole service; cannot be changed. That of a service account ends with `.invalid` and receives no mail.";
export const TYPE_TEXT = "`service` for a service account. Absent for a person.";
export const PERMISSIONS_TEXT =
  "What a sales user may do beyond their own prospects. Admins and owners hold every permission.";
export const ASSIGNEE_TEXT = "An active user of the company, or null for nobody.";
/* @__PURE__ */ explain([UserSummary], () => ({ fields: { email: EMAIL_TEXT, type: TYPE_TEXT } }));

/** A stored user may have an e-mail address that the rule for new addresses refuses. */
const KnownEmail = z.email({ pattern: /@/ }).check(atMost(limits.email));

export const userFields = {
  id: Id,
  firstName: text(limits.name),
  lastName: text(limits.name),
  email: KnownEmail,
  role: Role,
  permissions: z.array(Permission),
  isActive: z.boolean(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

/** The row of the user and the row of the token subject both contain these fields. One transaction writes both rows. */
export const UserRights = z.object({ role: Role, permissions: z.array(Permission), isActive: z.boolean() });
export type UserRights = z.infer<typeof UserRights>;

/** How often a field of the record has changed that other records show, such as a user's name. Undefined if it has never changed. */
export const Renames = z.optional(z.int());

/** `sub` is the subject of the user's tokens, or the id of the key ring of a service account. */
export const StoredUser = z.object({
  ...userFields,
  type: z.literal("user"),
  companyId: Id,
  sub: z.string(),
  version: z.int(),
  renames: Renames,
  /** The time at which the invitation expires, in milliseconds since 1970. Undefined after the user has accepted. */
  invitedUntil: z.optional(z.int()),
  /** True for a service account: a program that uses the API by keys and cannot sign in. */
  isService: z.optional(z.literal(true)),
  isWithdrawn: z.optional(z.literal(true)),
});
export type StoredUser = z.infer<typeof StoredUser>;
