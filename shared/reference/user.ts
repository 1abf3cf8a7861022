/**
 * The schemas and rows of users, and the rules for who may change users. A user has four rows: the user, the rights by token subject, and
 * claims on the e-mail address in the company and in the whole service. If another company has the address, the last claim is missing.
 */
import * as z from "zod/mini";
import { type Caller, isBelow } from "#shared/auth/caller.ts";
import {
  EMAIL_TEXT,
  PERMISSIONS_TEXT,
  Permission,
  Role,
  type StoredUser,
  TYPE_TEXT,
  UserRights,
  UserType,
  userFields,
} from "#shared/auth/user-schema.ts";
import { absent, all, any, atMost, type Condition, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { explain } from "#shared/documentation.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Email, Id, label, named, requiredText, Timestamp } from "#shared/schema.ts";

export const InvitationState = z.enum(["pending", "accepted", "expired", "withdrawn"]);
export type InvitationState = z.infer<typeof InvitationState>;

export const User = named(
  "User",
  z.object({
    ...userFields,
    type: z.optional(UserType),
    invitation: InvitationState,
    invitationExpiresAt: z.nullable(Timestamp),
  }),
  "A user of the company. A user who is not active cannot sign in.",
);
export type User = z.infer<typeof User>;

export const Permissions = z.array(Permission).check(
  z.refine((list) => new Set(list).size === list.length, { error: "must hold each permission once" }),
  z.meta({ uniqueItems: true }),
);

/** OpenID Connect Core, section 2, limits a subject to 255 ASCII characters. */
const Subject = z
  .string()
  .check(z.minLength(1), z.maxLength(limits.subject), z.regex(/^[\x20-\x7e]*$/, "must be printable ASCII"));

const given = {
  firstName: label(limits.name),
  lastName: requiredText(limits.name),
  role: Role,
  permissions: Permissions,
};

export const NewUser = named(
  "NewUser",
  z.object({ email: Email, ...given, permissions: z._default(Permissions, []), sub: z.optional(Subject) }),
  "A new user. `sub` is the subject in the user's access tokens. Send it only to a deployment with an external issuer, because a deployment with its own user pool assigns subjects itself.",
);
export type NewUser = z.output<typeof NewUser>;

/* @__PURE__ */ explain([NewUser], () => ({
  example: { email: "nina@example.com", firstName: "Nina", lastName: "New", role: "sales" },
}));

export const UserPatch = named(
  "UserPatch",
  z.partial(z.object({ ...given, isActive: z.boolean() })),
  "Only sent fields change. An e-mail address cannot be changed.",
);
export type UserPatch = z.output<typeof UserPatch>;

/* @__PURE__ */ explain([User, NewUser, UserPatch], () => ({
  fields: {
    email: EMAIL_TEXT,
    type: TYPE_TEXT,
    permissions: PERMISSIONS_TEXT,
    isActive: "A user who is not active cannot sign in.",
    invitation:
      "The user's first request accepts the invitation. Nobody can sign in by an invitation that has expired or was withdrawn.",
    invitationExpiresAt:
      "When a pending invitation ends and its e-mail address becomes free again; null unless the invitation is pending.",
  },
}));
/* @__PURE__ */ explain([UserPatch], () => ({
  fields: {
    isActive:
      "True enables a disabled user, or sends a new invitation if the previous one was withdrawn or has expired.",
  },
  example: { lastName: "Rivera" },
}));

/** A claim on an address in the whole service. It ends at `invitedUntil`, unless the invited user has signed in. */
export const EmailClaim = z.object({
  type: z.literal("email"),
  companyId: Id,
  userId: Id,
  invitedUntil: z.optional(z.int()),
});
export type EmailClaim = z.infer<typeof EmailClaim>;

/** A claim on an e-mail address in one company. An invited user has it even if a user of another company has the same address. */
export const CompanyEmail = z.object({ type: z.literal("companyEmail"), userId: Id });

export const isEnded = ({ invitedUntil }: Pick<EmailClaim, "invitedUntil">, nowMs: number): boolean =>
  invitedUntil !== undefined && invitedUntil <= nowMs;

/** The condition that there is no row, or only the row of an expired invitation. */
const free = (nowMs: number): Condition => any(absent, atMost("invitedUntil", nowMs));

/** DynamoDB's TTL deletes the claim of an ended invitation after this time. Until then, `free` ignores the claim. */
const CLEAN_UP_MS = 24 * 3_600_000;

export const userWrite = (user: StoredUser, when: Condition = absent): Write => ({
  put: { ...keys.user(user.companyId, user.id), ...user },
  when,
});

/**
 * Writes the rights by token subject. The row of an invited user with a claim on the e-mail address (`claimed`) contains the address, so
 * that the first sign-in makes the claim permanent.
 */
export const identityWrite = (
  { companyId, id: userId, sub, email, invitedUntil, ...user }: StoredUser,
  claimed: boolean,
  nowMs: number,
): Write => ({
  put: {
    ...keys.identity(sub),
    type: "identity",
    companyId,
    userId,
    rights: UserRights.parse(user),
    ...(invitedUntil !== undefined && { invitedUntil, ...(claimed && { email: email.toLowerCase() }) }),
  },
  when: any(free(nowMs), equals("userId", userId)),
});

export const addressTaken = (): ApiError => new ApiError("conflict", "This e-mail address is in use.");

/** Claims the user's e-mail address in the company. `replaces` is the user who had the address before. */
export const companyEmailWrite = ({ companyId, id: userId, email }: StoredUser, replaces?: number): Write => ({
  put: { ...keys.companyEmail(companyId, email.toLowerCase()), type: "companyEmail", userId },
  when: replaces === undefined ? absent : any(absent, equals("userId", replaces)),
  orThrow: addressTaken,
});

export const claimWrite = ({ companyId, id: userId, email, invitedUntil }: StoredUser, nowMs: number): Write => ({
  put: {
    ...keys.email(email.toLowerCase()),
    type: "email",
    companyId,
    userId,
    ...(invitedUntil !== undefined && { invitedUntil, expiresAt: Math.ceil((invitedUntil + CLEAN_UP_MS) / 1_000) }),
  },
  when: free(nowMs),
  orThrow: addressTaken,
});

/** The writes for a new user, which fail if another user of the service has the e-mail address or the token subject. */
export function newUserWrites(user: StoredUser): Write[] {
  const nowMs = Date.parse(user.createdAt);
  return [userWrite(user), identityWrite(user, true, nowMs), companyEmailWrite(user), claimWrite(user, nowMs)];
}

/** Copies a user's rights to the row of the token subject. Add this write to each transaction that changes a user. */
export const rightsWrite = ({ id, sub, ...user }: StoredUser): Write => ({
  update: keys.identity(sub),
  change: { set: { rights: UserRights.parse(user) } },
  when: equals("userId", id),
});

export const invitationEndsAt = (nowMs: number): number => nowMs + limits.invitationMs;

export function requireOwnerFor(caller: Caller, ...roles: readonly Role[]): void {
  if (caller.role !== "owner" && roles.includes("owner"))
    throw denied("Only an owner may create, change or disable an owner.");
}

/**
 * So that a company keeps an owner, users cannot disable themselves or lower their own role, and no API key may lower an owner. Also throws
 * if callers change themselves after they have lost the role that API Gateway has cached.
 */
export function requireNoSelfDemotion(caller: Caller, current: StoredUser, next: StoredUser): void {
  const losesOwner = current.role === "owner" && current.isActive && (next.role !== "owner" || !next.isActive);
  if (caller.key !== undefined && losesOwner) throw denied("Only a person may lower or disable an owner.");
  if (current.id !== caller.userId) return;
  if (!current.isActive || current.role !== caller.role) throw roleChanged();
  if (!next.isActive) throw new ApiError("conflict", "You cannot disable yourself.");
  if (isBelow(next.role, current.role)) throw new ApiError("conflict", "You cannot lower your own role.");
}

/** A check that the caller still has the role that API Gateway has cached. Without the check, two owners could disable each other. */
export const callerUnchanged = ({ companyId, userId, role }: Caller): Write => ({
  check: keys.user(companyId, userId),
  when: all(equals("role", role), equals("isActive", true)),
  orThrow: roleChanged,
});

const roleChanged = (): ApiError => denied("Your role has changed.");

const denied = (detail: string): ApiError => new ApiError("permission_denied", detail);
