/**
 * Invites users, within a daily quota for each company.
 *
 * An e-mail address belongs to one user of the whole service, and no caller may learn whether another company has it. An invitation to
 * a taken address is therefore recorded like any other, but no mail is sent and it expires unaccepted.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, any, below, type Condition, equals, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { namesChange } from "#shared/reference/dictionary.ts";
import type { InvitationState, NewUser, User } from "#shared/reference/user.ts";
import {
  CompanyEmail,
  claimWrite,
  companyEmailWrite,
  EmailClaim,
  identityWrite,
  invitationEndsAt,
  isEnded,
  userWrite,
} from "#shared/reference/user.ts";
import { outOfOffice, requireOwnerFor, stillInOffice } from "#shared/reference/user-rules.ts";
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

/**
 * The invitation comes before the rows: cut off between the two, the next try finds the same subject or another one, and
 * either is free. Throws conflict when somebody in the company has the address, or somebody in the service the subject.
 */
export async function createUser(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  { sub: named, ...input }: NewUser,
): Promise<StoredUser> {
  requireOwnerFor(caller, input.role);
  if (named !== undefined && !identities.takesSubjects) throw subjectRefused();
  return inConstantTime(identities, async () => {
    const address = await lookAtAddress(context, caller, input.email);
    await countInvitation(context, caller.companyId);
    const id = await context.ids.next();
    const nowMs = context.clock.now();
    const now = iso(nowMs);
    const user: Unclaimed = {
      type: "user",
      id,
      companyId: caller.companyId,
      ...input,
      isActive: true,
      version: 1,
      createdAt: now,
      updatedAt: now,
      invitedUntil: invitationEndsAt(nowMs),
    };
    return commitInvitation(context, identities, caller, { user, named, address, when: absent });
  });
}

/** Sends an invitation that was withdrawn or has expired once more. Throws what `createUser` throws, and ConditionFailed for another version. */
export function inviteAgain(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  current: StoredUser,
  next: StoredUser,
): Promise<StoredUser> {
  return inConstantTime(identities, async () => {
    const address = await lookAtAddress(context, caller, current.email, current.id);
    await countInvitation(context, caller.companyId);
    const nowMs = context.clock.now();
    const { sub: known, isWithdrawn: _, ...fields } = next;
    const user: Unclaimed = {
      ...fields,
      version: current.version + 1,
      updatedAt: iso(nowMs),
      invitedUntil: invitationEndsAt(nowMs),
    };
    return commitInvitation(context, identities, caller, {
      user,
      known,
      address,
      when: equals("version", current.version),
    });
  });
}

/** A user without a subject yet. */
type Unclaimed = Omit<StoredUser, "sub">;

interface Invitation {
  readonly user: Unclaimed;
  /** The subject that the inviter named. */
  readonly named?: string | undefined;
  /** The subject that the user had before. */
  readonly known?: string;
  readonly address: Address;
  /** Of the user's row. */
  readonly when: Condition;
}

async function commitInvitation(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  invitation: Invitation,
): Promise<StoredUser> {
  const { user: unclaimed, named, known, address, when } = invitation;
  const isOurs = !address.isHeldElsewhere;
  // A subject that nobody has, for an address that somebody else has: all rows are as they would be, and nobody signs in by them.
  const { sub } =
    named !== undefined
      ? { sub: named }
      : isOurs
        ? await identities.invite(unclaimed.email, known)
        : { sub: randomUUID() };
  const user: StoredUser = { ...unclaimed, sub };
  const nowMs = context.clock.now();
  const writes = [
    userWrite(user, when),
    stillInOffice(caller),
    identityWrite(user, isOurs, nowMs),
    companyEmailWrite(user, address.replaces),
    ...(isOurs ? [claimWrite(user, nowMs)] : []),
    ...namesChange(caller.companyId),
  ];
  try {
    await context.commit(writes, presentUser(user, nowMs));
    return user;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    const isLost = isHeldByOthers(error, caller, named !== undefined);
    if (!isLost || !isOurs) throw faultOf(error, named !== undefined);
    return commitInvitation(context, identities, caller, {
      ...invitation,
      address: { ...address, isHeldElsewhere: true },
    });
  }
}

/** The places of the writes: the user's row, the caller's office, the subject, the address in the company, the claim on it. */
const [ROW, OFFICE, SUBJECT, ADDRESS, CLAIM] = [0, 1, 2, 3, 4];

/** Another company was faster with the claim, or has the pool's subject for this address. */
function isHeldByOthers({ failed }: ConditionFailed, { companyId }: Caller, isSubjectNamed: boolean): boolean {
  return failed.every(
    ({ index, item }) => (index === CLAIM || (index === SUBJECT && !isSubjectNamed)) && item?.companyId !== companyId,
  );
}

function faultOf(error: ConditionFailed, isSubjectNamed: boolean): Error {
  const indexes = error.failed.map(({ index }) => index);
  if (indexes.includes(OFFICE)) return outOfOffice();
  if (indexes.includes(ADDRESS)) return addressTaken();
  if (indexes.includes(ROW)) return error;
  return isSubjectNamed && indexes.includes(SUBJECT) ? subjectTaken() : addressTaken();
}

const subjectTaken = (): ApiError => new ApiError("conflict", "This subject is in use.");

function subjectRefused(): ApiError {
  const message = "is given by the user pool of this deployment";
  const faults = [{ pointer: "/sub", code: "not_allowed", message }];
  return new ApiError("validation_failed", `sub ${message}.`, { faults });
}
