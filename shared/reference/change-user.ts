/**
 * Changes, disables and enables users. Disabling an invited user, who has not signed in, withdraws the invitation. Enabling sends a new
 * one.
 */
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { all, equals, exists } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed, notFound } from "#shared/errors.ts";
import { changeOf, namesChange, nextVersion } from "#shared/reference/dictionary.ts";
import { canSignIn, inConstantTime, invitationOf, inviteAgain } from "#shared/reference/invite.ts";
import type { UserPatch } from "#shared/reference/user.ts";
import { EmailClaim, rightsWrite, userWrite } from "#shared/reference/user.ts";
import { callerUnchanged, requireNoSelfDemotion, requireOwnerFor, roleChanged } from "#shared/reference/user-rules.ts";
import { getUser } from "#shared/reference/users.ts";

/** Writes nothing if all values are the same as before. */
export function updateUser(context: ApiContext, caller: Caller, id: number, patch: UserPatch): Promise<StoredUser> {
  const work = async (): Promise<StoredUser> => {
    const current = await getUser(context, caller.companyId, id);
    const next = patched(current, patch);
    if (JSON.stringify(current) === JSON.stringify(next)) return current;
    requireOwnerFor(caller, current.role, next.role);
    requireNoSelfDemotion(caller, current, next);
    const written = nextVersion(current, { ...next, updatedAt: iso(context.clock.now()) });
    const put: Write = { put: { ...keys.user(caller.companyId, id), ...written }, when: isUnchanged(current) };
    // A transaction may contain each row only once, and the caller's own row already has a condition.
    const office = id === caller.userId ? [] : [callerUnchanged(caller)];
    // After an ended invitation, the token subject may belong to another user, whose rights this write would change.
    const rights = canSignIn(current, context.clock.now()) ? [rightsWrite(written)] : [];
    const names = namesChange(caller.companyId, changeOf(current, written));
    await context.table.transact([put, ...rights, ...office, ...names]);
    return written;
  };
  const isConflict = ({ failed }: ConditionFailed) =>
    failed.some(({ index, item }) => index === 0 || item?.type === "identity");
  return optimistic(work, isConflict).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? roleChanged() : error;
  });
}

/** The user's prospects stay assigned. */
export async function disableUser(context: ApiContext, caller: Caller, id: number): Promise<void> {
  const current = await getUser(context, caller.companyId, id);
  if (!current.isActive) throw notFound("user");
  await updateUser(context, caller, id, { isActive: false });
}

const isUnchanged = ({ version }: StoredUser) => equals("version", version);

function patched(current: StoredUser, patch: UserPatch): StoredUser {
  return {
    ...current,
    firstName: patch.firstName ?? current.firstName,
    lastName: patch.lastName ?? current.lastName,
    role: patch.role ?? current.role,
    permissions: patch.permissions ?? current.permissions,
    isActive: patch.isActive ?? current.isActive,
  };
}

/** Enabling a user whose invitation has ended sends a new invitation. */
export async function changeUser(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  id: number,
  patch: UserPatch,
): Promise<StoredUser> {
  if (patch.isActive !== true) return updateUser(context, caller, id, patch);
  const revived = await optimistic(async () => {
    const current = await getUser(context, caller.companyId, id);
    if (canSignIn(current, context.clock.now())) return undefined;
    const next = patched(current, patch);
    requireOwnerFor(caller, current.role, next.role);
    return inviteAgain(context, identities, caller, current, next);
  });
  return revived ?? updateUser(context, caller, id, patch);
}

/**
 * After a withdrawn invitation, the e-mail address can be invited again. Throws `not_found` if the user is already disabled or withdrawn.
 */
export async function disableOrWithdraw(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  id: number,
): Promise<void> {
  await optimistic(async () => {
    const current = await getUser(context, caller.companyId, id);
    const invitation = invitationOf(current, context.clock.now());
    if (invitation === "withdrawn") throw notFound("user");
    if (invitation === "accepted") return disableUser(context, caller, id);
    requireOwnerFor(caller, current.role);
    requireNoSelfDemotion(caller, current, { ...current, isActive: false });
    await inConstantTime(identities, () => withdraw(context, identities, caller, current));
  }, isOutdated).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? roleChanged() : error;
  });
}

/** Unless the check of the caller has failed, another attempt may succeed. */
const isOutdated = ({ failed }: ConditionFailed): boolean => failed.every(({ index }) => index !== CALLER);
const CALLER = 1;

/**
 * Withdraws an invitation: first at the identity provider, and then in the rows, which prevent a new invitation. In the opposite order, the
 * address could be invited again in between, and the removal would remove the new user.
 */
async function withdraw(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  current: StoredUser,
): Promise<void> {
  const { companyId, id, sub, email } = current;
  const nowMs = context.clock.now();
  const claimKey = keys.email(email.toLowerCase());
  const found = await context.table.get(claimKey);
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
    callerUnchanged(caller),
    // After an expired invitation, another user may have these rows. They are deleted only if they still belong to this user.
    ...(isPending ? [{ remove: keys.identity(sub), when: all(equals("userId", id), exists("invitedUntil")) }] : []),
    ...(isOurs ? [{ remove: claimKey, when: all(equals("userId", id), exists("invitedUntil")) }] : []),
    ...namesChange(companyId, changeOf(current, next)),
  ];
  await context.table.transact(writes);
}
