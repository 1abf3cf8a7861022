/**
 * Invites users. An address belongs to one user of the whole service; nobody learns whether somebody elsewhere has it: the
 * invitation is then recorded as any other, no mail is sent, and it ends unaccepted.
 */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, type Condition, equals } from "#shared/db/expression.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import { namesChange } from "#shared/reference/dictionary.ts";
import {
  type Address,
  addressTaken,
  countInvitation,
  inConstantTime,
  lookAtAddress,
  presentUser,
} from "#shared/reference/invitation.ts";
import {
  claimWrite,
  companyEmailWrite,
  identityWrite,
  invitationEndsAt,
  userWrite,
} from "#shared/reference/new-user.ts";
import type { NewUser } from "#shared/reference/user.ts";
import { outOfOffice, requireOwnerFor, stillInOffice } from "#shared/reference/user-rules.ts";

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
