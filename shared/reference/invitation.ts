/** Invitations: how a user stands, who has an address already, and how many a company may send in a day. */
import { setTimeout as wait } from "node:timers/promises";
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { any, below, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { CompanyEmail, EmailClaim, isEnded } from "#shared/reference/new-user.ts";
import type { InvitationState, User } from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";

export function invitationOf({ invitedUntil, isWithdrawn }: StoredUser, nowMs: number): InvitationState {
  if (isWithdrawn === true) return "withdrawn";
  if (invitedUntil === undefined) return "accepted";
  return invitedUntil <= nowMs ? "expired" : "pending";
}

/** May sign in, now or by taking the invitation up. */
export const isStanding = (user: StoredUser, nowMs: number): boolean =>
  ["accepted", "pending"].includes(invitationOf(user, nowMs));

export function presentUser(user: StoredUser, nowMs: number): User {
  const invitation = invitationOf(user, nowMs);
  const { invitedUntil } = user;
  const endsAt = invitation === "pending" && invitedUntil !== undefined ? iso(invitedUntil) : null;
  return { ...user, invitation, invitationExpiresAt: endsAt };
}

/** How an address stands when somebody is invited with it. */
export interface Address {
  /** Another company has a user or a pending invitation with it. */
  readonly isHeldElsewhere: boolean;
  /** The user who had it last in the company, and has it no more. */
  readonly replaces: number | undefined;
}

/** Two reads, whoever has the address. Throws conflict where somebody else in the company has it. */
export async function lookAtAddress(
  context: ApiContext,
  { companyId }: Caller,
  email: string,
  forUser?: number,
): Promise<Address> {
  const { table, clock } = context;
  const address = email.toLowerCase();
  const [claimed, own] = await Promise.all([
    table.get(keys.email(address)),
    table.get(keys.companyEmail(companyId, address)),
  ]);
  const now = clock.now();
  const claim = claimed === undefined ? undefined : EmailClaim.parse(claimed);
  const isHeld = claim !== undefined && !isEnded(claim, now);
  if (isHeld && claim.companyId === companyId && claim.userId !== forUser) throw addressTaken();
  const replaces = own === undefined ? undefined : CompanyEmail.parse(own).userId;
  if (replaces !== undefined && replaces !== forUser) {
    if (isStanding(await getUser(context, companyId, replaces), now)) throw addressTaken();
  }
  return { isHeldElsewhere: isHeld && claim.companyId !== companyId, replaces };
}

export const addressTaken = (): ApiError => new ApiError("conflict", "This e-mail address is in use.");

const DAY_MS = 24 * 3_600_000;

/** Counted before the mail goes out, and not given back when the invitation fails: the mail may have gone. Throws rate_limited. */
export async function countInvitation({ table, clock }: ApiContext, companyId: number): Promise<void> {
  const now = clock.now();
  const dayEndsAt = (Math.floor(now / DAY_MS) + 1) * DAY_MS;
  const expiresAt = Math.ceil((dayEndsAt + DAY_MS) / 1_000);
  await table
    .write({
      update: keys.quota(companyId, "INVITATIONS", iso(now).slice(0, "YYYY-MM-DD".length)),
      change: { add: { used: 1 }, set: { type: "quota", expiresAt } },
      when: any(missing("used"), below("used", limits.invitationsPerDay)),
    })
    .catch((error: unknown) => {
      if (!(error instanceof ConditionFailed)) throw error;
      const detail = `A company sends at most ${limits.invitationsPerDay} invitations a day (UTC).`;
      const headers = { "Retry-After": String(Math.ceil((dayEndsAt - now) / 1_000)) };
      throw new ApiError("rate_limited", detail, { headers });
    });
}

/** A success takes as long as the provider asks for: who has an address elsewhere does not show in the time either. */
export async function inConstantTime<T>({ answersAfterMs }: IdentityProvider, work: () => Promise<T>): Promise<T> {
  const [made] = await Promise.all([work(), wait(answersAfterMs)]);
  return made;
}
