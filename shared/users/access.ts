/** Gives and ends the access of users: an invitation that nobody took up is withdrawn, or sent once more; anyone else is disabled and enabled. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { namesChange } from "#shared/companies/dictionary.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { all, equals, exists } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Write } from "#shared/db/table.ts";
import { notFound } from "#shared/http/problem.ts";
import type { IdentityProvider } from "#shared/identity/provider.ts";
import { inConstantTime, invitationOf, isStanding } from "#shared/users/invitation.ts";
import { inviteAgain } from "#shared/users/invite.ts";
import { EmailClaim, userWrite } from "#shared/users/new-user.ts";
import { outOfOffice, requireOwnerFor, requireSoundSelf, stillInOffice } from "#shared/users/rules.ts";
import type { StoredUser } from "#shared/users/schema.ts";
import type { UserPatch } from "#shared/users/user.ts";
import { getUser } from "#shared/users/users.ts";
import { disableUser, patched, updateUser } from "#shared/users/write.ts";
import type { World } from "#shared/world.ts";

/** As `updateUser`; `isActive` sends an invitation that was withdrawn or has expired once more. */
export async function changeUser(
  world: World,
  identities: IdentityProvider,
  caller: Caller,
  id: number,
  patch: UserPatch,
): Promise<StoredUser> {
  if (patch.isActive !== true) return updateUser(world, caller, id, patch);
  const revived = await optimistic(async () => {
    const current = await getUser(world, caller.companyId, id);
    if (isStanding(current, world.clock.now())) return undefined;
    const next = patched(current, patch);
    requireOwnerFor(caller, current.role, next.role);
    return inviteAgain(world, identities, caller, current, next);
  });
  return revived ?? updateUser(world, caller, id, patch);
}

/** An invitation is withdrawn: its address is free again. Throws not_found for a user who is out already. */
export async function endAccess(world: World, identities: IdentityProvider, caller: Caller, id: number): Promise<void> {
  await optimistic(async () => {
    const current = await getUser(world, caller.companyId, id);
    const invitation = invitationOf(current, world.clock.now());
    if (invitation === "withdrawn") throw notFound("user");
    if (invitation === "accepted") return disableUser(world, caller, id);
    requireOwnerFor(caller, current.role);
    requireSoundSelf(caller, current, { ...current, isActive: false });
    await inConstantTime(identities, () => withdraw(world, identities, caller, current));
  }, isOutdated).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? outOfOffice() : error;
  });
}

/** The user has signed in meanwhile, or was changed: then the rule is another one. */
const isOutdated = ({ failed }: ConditionFailed): boolean => failed.every(({ index }) => index !== OFFICE);
const OFFICE = 1;

/**
 * First the provider, while the claim still keeps others from inviting the address: whoever claims it next is never the one
 * whom the provider forgets. Cut off between the two, the next try does the same again.
 */
async function withdraw(
  world: World,
  identities: IdentityProvider,
  caller: Caller,
  current: StoredUser,
): Promise<void> {
  const { companyId, id, sub, email } = current;
  const nowMs = world.clock.now();
  const claimKey = keys.email(email.toLowerCase());
  const found = await world.table.get(claimKey);
  const claim = found === undefined ? undefined : EmailClaim.parse(found);
  const isOurs = claim?.userId === id;
  const isPending = invitationOf(current, nowMs) === "pending";
  if (isOurs && isPending) await identities.withdraw(email);
  const next: StoredUser = {
    ...current,
    isActive: false,
    isWithdrawn: true,
    version: current.version + 1,
    updatedAt: iso(nowMs),
  };
  const writes: Write[] = [
    userWrite(next, equals("version", current.version)),
    stillInOffice(caller),
    // An expired invitation may have lost its subject to another user, and nobody signs in by it.
    ...(isPending ? [{ remove: keys.identity(sub), when: all(equals("userId", id), exists("invitedUntil")) }] : []),
    ...(isOurs ? [{ remove: claimKey, when: all(equals("userId", id), exists("invitedUntil")) }] : []),
    ...namesChange(companyId),
  ];
  await world.table.transact(writes);
}
