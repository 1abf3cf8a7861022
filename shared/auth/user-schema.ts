/** A user of the directory as other records and the table have it: who may sign in, for which company, with what rights. */

import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
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

/** Texts that the schemas of users, prospects, appointments and territories share. */
export const EMAIL_TEXT = "Unique in the whole service; cannot be changed.";
export const PERMISSIONS_TEXT =
  "What a sales user may do beyond their own prospects. Admins and owners hold every permission.";
export const ASSIGNEE_TEXT = "An active user of the company, or null for nobody.";
/* @__PURE__ */ explain([UserSummary], () => ({ fields: { email: EMAIL_TEXT } }));

/** What the interface and the table have in common. */
export const userFields = {
  id: Id,
  firstName: text(limits.name),
  lastName: text(limits.name),
  email: Email,
  role: Role,
  permissions: z.array(Permission),
  isActive: z.boolean(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

/** What a sign-in looks at. It stands in the user's row and beside the place of the token subject, written together. */
export const UserRights = z.object({ role: Role, permissions: z.array(Permission), isActive: z.boolean() });
export type UserRights = z.infer<typeof UserRights>;

/** As the table holds it. `sub` is the identity provider's name for the user. */
export const StoredUser = z.object({
  ...userFields,
  type: z.literal("user"),
  companyId: Id,
  sub: z.string(),
  version: z.int(),
  /** Until the user has signed in once: when the invitation ends. Milliseconds since the epoch. */
  invitedUntil: z.optional(z.int()),
  isWithdrawn: z.optional(z.literal(true)),
});
export type StoredUser = z.infer<typeof StoredUser>;
