/** A user of the directory as other records and the table have it: who may sign in, for which company, with what rights. */

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
