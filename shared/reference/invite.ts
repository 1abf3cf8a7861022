/**
 * Invites users, up to a daily maximum. Only one user of the service can own an e-mail address. If another company has the address, the
 * caller must not learn this: the invitation is stored like any other, but sends no mail, and expires.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { DAY_MS, iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, any, below, type Condition, equals, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError, conditionHolds, invalid } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { checkedCaller } from "#shared/reference/caller-checks.ts";
import { changeOf, creationOf, namesChange, nextVersion } from "#shared/reference/dictionary.ts";
import {
  addressTaken,
  CompanyEmail,
  claimWrite,
  companyEmailWrite,
  EmailClaim,
  type InvitationState,
  identityWrite,
  invitationEndsAt,
  isEnded,
  type NewUser,
  requireOwnerFor,
  type User,
  userWrite,
} from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";

export function invitationOf({ invitedUntil, isWithdrawn }: StoredUser, nowMs: number): InvitationState {
  if (isWithdrawn === true) return "withdrawn";
  if (invitedUntil === undefined) return "accepted";
  return invitedUntil <= nowMs ? "expired" : "pending";
}

export const canSignIn = (user: StoredUser, nowMs: number): boolean =>
  ["accepted", "pending"].includes(invitationOf(user, nowMs));

/** The answer about a user. The schema of the answer removes other fields, such as the token subject. */
export type PresentedUser = Omit<StoredUser, "type"> & Pick<User, "type" | "invitation" | "invitationExpiresAt">;

export function presentUser(user: StoredUser, nowMs: number): PresentedUser {
  const invitation = invitationOf(user, nowMs);
  const { invitedUntil } = user;
  const endsAt = invitation === "pending" && invitedUntil !== undefined ? iso(invitedUntil) : null;
  const type = user.isService ? "service" : undefined;
  return { ...user, type, invitation, invitationExpiresAt: endsAt };
}

interface Claimants {
  /** Another company has a user or a pending invitation with the address. */
  readonly isHeldElsewhere: boolean;
  /** The user of this company who had the address before. */
  readonly replaces: number | undefined;
}

/**
 * Finds who has an e-mail address. Reads the same rows for every address, so that the duration reveals nothing about other companies.
 * Throws `conflict` if another user of this company has the address.
 */
async function claimantsOf(
  context: ApiContext,
  { companyId }: Caller,
  email: string,
  forUser?: number,
): Promise<Claimants> {
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
    if (canSignIn(await getUser(context, companyId, replaces), now)) throw addressTaken();
  }
  return { isHeldElsewhere: isHeld && claim.companyId !== companyId, replaces };
}

/** Counts one use of a quota. Returns false if the company has used the quota up on this UTC day. */
export const takesFromQuota = (
  table: Pick<Table, "write">,
  companyId: number,
  name: "INVITATIONS" | "MAILS",
  mostPerDay: number,
  nowMs: number,
): Promise<boolean> =>
  conditionHolds(
    table.write({
      update: keys.quota(companyId, name, iso(nowMs).slice(0, "YYYY-MM-DD".length)),
      change: { add: { used: 1 }, set: { type: "quota", expiresAt: Math.ceil((nowMs + 2 * DAY_MS) / 1_000) } },
      when: any(missing("used"), below("used", mostPerDay)),
    }),
  );

/** A failed invitation counts too, because its mail may have been sent. Throws `rate_limited` above the daily maximum. */
async function countInvitation({ table, clock }: ApiContext, companyId: number): Promise<void> {
  const now = clock.now();
  if (await takesFromQuota(table, companyId, "INVITATIONS", limits.invitationsPerDay, now)) return;
  const detail = `A company sends at most ${limits.invitationsPerDay} invitations a day (UTC).`;
  const headers = { "Retry-After": String(Math.ceil((DAY_MS - (now % DAY_MS)) / 1_000)) };
  throw new ApiError("rate_limited", detail, { headers });
}

/** Starts a timer, and returns a function that waits for its end. A success must wait: an early answer reveals that no mail was sent. */
export function constantTime({ answersAfterMs }: IdentityProvider): () => Promise<void> {
  const waited = wait(answersAfterMs);
  return () => waited;
}

/**
 * Invites a new user. Throws `conflict` if a user of the company has the e-mail address, or any user of the service has the chosen token
 * subject. Throws `rate_limited` if the company has sent the daily maximum of invitations.
 */
export async function createUser(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  { sub: named, ...input }: NewUser,
): Promise<Plan<PresentedUser>> {
  requireOwnerFor(caller, input.role);
  if (named !== undefined && !identities.takesSubjects) throw subjectRefused();
  const after = constantTime(identities);
  const address = await claimantsOf(context, caller, input.email);
  await countInvitation(context, caller.companyId);
  const nowMs = context.clock.now();
  const now = iso(nowMs);
  const user: Unclaimed = {
    type: "user",
    id: await context.ids.next(),
    companyId: caller.companyId,
    ...input,
    isActive: true,
    version: 1,
    createdAt: now,
    updatedAt: now,
    invitedUntil: invitationEndsAt(nowMs),
  };
  return invitation(context, identities, caller, { user, named, address, when: absent, after });
}

/** Renews an ended invitation. Throws the errors of `createUser`. */
export async function inviteAgain(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  current: StoredUser,
  next: StoredUser,
): Promise<Plan<PresentedUser>> {
  const after = constantTime(identities);
  const address = await claimantsOf(context, caller, current.email, current.id);
  await countInvitation(context, caller.companyId);
  const nowMs = context.clock.now();
  const { sub: known, isWithdrawn: _, ...fields } = next;
  const dates = { updatedAt: iso(nowMs), invitedUntil: invitationEndsAt(nowMs) };
  const user: Unclaimed = nextVersion(current, { ...fields, ...dates });
  const when = equals("version", current.version);
  return invitation(context, identities, caller, { user, before: current, known, address, when, after });
}

/** A user before the identity provider has assigned the token subject. */
type Unclaimed = Omit<StoredUser, "sub">;

interface Invitation {
  readonly user: Unclaimed;
  /** Undefined for a new user. */
  readonly before?: StoredUser;
  /** The token subject that the caller has chosen. */
  readonly named?: string | undefined;
  /** The token subject before this invitation. */
  readonly known?: string;
  readonly address: Claimants;
  readonly when: Condition;
  readonly after: () => Promise<unknown>;
}

async function invitation(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  invited: Invitation,
): Promise<Plan<PresentedUser>> {
  const { user: unclaimed, before, named, known, address, when, after } = invited;
  const isOurs = !address.isHeldElsewhere;
  // If another company has the address, the user gets a random token subject, with which nobody can sign in.
  const given = named ?? (isOurs ? (await identities.invite(unclaimed.email, known)).sub : randomUUID());
  const user: StoredUser = { ...unclaimed, sub: given };
  const nowMs = context.clock.now();
  const { checks } = await checkedCaller(context, caller);
  const subject = identityWrite(user, isOurs, nowMs);
  const claim = isOurs ? [claimWrite(user, nowMs)] : [];
  return {
    writes: [
      userWrite(user, when),
      ...checks,
      companyEmailWrite(user, address.replaces),
      { ...subject, orThrow: named === undefined ? addressTaken : subjectTaken },
      ...claim,
      ...namesChange(caller.companyId, before === undefined ? creationOf(user) : changeOf(before, user)),
    ],
    answer: presentUser(user, nowMs),
    after,
    refused: ({ failed }) => {
      // The indexes of the writes that fail if a user of another company has the token subject or the address. If the caller has chosen the
      // token subject, it is not among them.
      const others = named === undefined ? [3, 4] : [4];
      const isLost = failed.every(({ index, item }) => others.includes(index) && item?.companyId !== caller.companyId);
      if (!isLost || !isOurs) return undefined;
      return invitation(context, identities, caller, { ...invited, address: { ...address, isHeldElsewhere: true } });
    },
  };
}

const subjectTaken = (): ApiError => new ApiError("conflict", "This subject is in use.");

function subjectRefused(): ApiError {
  const message = "is given by the user pool of this deployment";
  return invalid(`sub ${message}.`, { pointer: "/sub", code: "not_allowed", message });
}
