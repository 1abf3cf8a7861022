/** The rows that make a user: the directory entry, the place and rights of the token subject, the claims on the e-mail address. */
import * as z from "zod/mini";
import { type StoredUser, UserRights } from "#shared/auth/user-schema.ts";
import { absent, any, atMost, type Condition, equals } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { limits } from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";

/** Who has an e-mail address in the whole service: at most one user. Until the user has signed in, only until then. */
export const EmailClaim = z.object({
  type: z.literal("email"),
  companyId: Id,
  userId: Id,
  invitedUntil: z.optional(z.int()),
});
export type EmailClaim = z.infer<typeof EmailClaim>;

/** Who has it in one company: also a user whose address belongs to another company. */
export const CompanyEmail = z.object({ type: z.literal("companyEmail"), userId: Id });

export const isEnded = ({ invitedUntil }: Pick<EmailClaim, "invitedUntil">, nowMs: number): boolean =>
  invitedUntil !== undefined && invitedUntil <= nowMs;

/** Nobody has it, or an invitation that was never accepted has ended. */
const free = (nowMs: number): Condition => any(absent, atMost("invitedUntil", nowMs));

/** Rows that an ended invitation leaves behind go by the table's own clean-up. */
const CLEAN_UP_MS = 24 * 3_600_000;

export const userWrite = (user: StoredUser, when: Condition = absent): Write => ({
  put: { ...keys.user(user.companyId, user.id), ...user },
  when,
});

/** A subject belongs to one user. `claimed`: the user has the claim on the address, which goes with the first sign-in. */
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

/** `replaces` had the address in the company before, and has it no more. */
export const companyEmailWrite = ({ companyId, id: userId, email }: StoredUser, replaces?: number): Write => ({
  put: { ...keys.companyEmail(companyId, email.toLowerCase()), type: "companyEmail", userId },
  when: replaces === undefined ? absent : any(absent, equals("userId", replaces)),
});

export const claimWrite = ({ companyId, id: userId, email, invitedUntil }: StoredUser, nowMs: number): Write => ({
  put: {
    ...keys.email(email.toLowerCase()),
    type: "email",
    companyId,
    userId,
    ...(invitedUntil !== undefined && {
      invitedUntil,
      expiresAt: Math.ceil((invitedUntil + CLEAN_UP_MS) / 1_000),
    }),
  },
  when: free(nowMs),
});

/** A user with a claim on the address. One user per e-mail address and per subject in the whole service. */
export function newUserWrites(user: StoredUser): Write[] {
  const nowMs = Date.parse(user.createdAt);
  return [userWrite(user), identityWrite(user, true, nowMs), companyEmailWrite(user), claimWrite(user, nowMs)];
}

/** Goes into the transaction of every change of a user: what the next sign-in goes by. */
export const rightsWrite = ({ id, sub, ...user }: StoredUser): Write => ({
  update: keys.identity(sub),
  change: { set: { rights: UserRights.parse(user) } },
  when: equals("userId", id),
});

export const invitationEndsAt = (nowMs: number): number => nowMs + limits.invitationMs;
