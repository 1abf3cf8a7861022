/** Changes, disables and enables users. Before the first sign-in, disabling withdraws the invitation, and enabling sends a new one. */
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, equals, exists, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import { withPatch } from "#shared/patch.ts";
import { checkedCaller } from "#shared/reference/caller-checks.ts";
import { creatorWrites, losesRights } from "#shared/reference/created-keys.ts";
import { changeOf, freshDictionary, namesChange, namesChangeAfter, nextVersion } from "#shared/reference/dictionary.ts";
import {
  canSignIn,
  constantTime,
  invitationOf,
  inviteAgain,
  type PresentedUser,
  presentUser,
} from "#shared/reference/invite.ts";
import {
  EmailClaim,
  requireNoSelfDemotion,
  requireOwnerFor,
  rightsWrite,
  type UserPatch,
  userWrite,
} from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";

export async function changeUser(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  id: number,
  patch: UserPatch,
): Promise<Plan<PresentedUser>> {
  const current = await getPerson(context, caller.companyId, id);
  const next = withPatch(current, patch);
  if (patch.isActive !== true || canSignIn(current, context.clock.now())) {
    return userChange(context, caller, current, next);
  }
  requireOwnerFor(caller, current.role, next.role);
  return inviteAgain(context, identities, caller, current, next);
}

async function userChange(
  context: ApiContext,
  caller: Caller,
  current: StoredUser,
  next: StoredUser,
): Promise<Plan<PresentedUser>> {
  const nowMs = context.clock.now();
  if (JSON.stringify(current) === JSON.stringify(next)) return unchanged(presentUser(current, nowMs));
  requireOwnerFor(caller, current.role, next.role);
  requireNoSelfDemotion(caller, current, next);
  const written = nextVersion(current, { ...next, updatedAt: iso(nowMs) });
  const writes: Write[] = [
    userWrite(written, equals("version", current.version)),
    // After an ended invitation, the token subject may belong to another user, who would get these rights.
    ...(canSignIn(current, nowMs) ? [rightsWrite(written)] : []),
    ...(await namesAndKeys(context, caller.companyId, current, written)),
  ];
  const { checks } = await checkedCaller(context, caller, writes);
  return { writes: [...writes, ...checks], answer: presentUser(written, nowMs) };
}

async function namesAndKeys(
  context: ApiContext,
  companyId: number,
  current: StoredUser,
  written: StoredUser,
): Promise<readonly Write[]> {
  const change = changeOf(current, written);
  if (!losesRights(current, written)) return namesChange(companyId, change);
  const dictionary = await freshDictionary(context, companyId);
  const { writes } = await creatorWrites(context, dictionary, current, written);
  return [...namesChangeAfter(dictionary, companyId, change), ...writes];
}

/** Throws `conflict` for a service account, which has routes of its own. */
async function getPerson(context: ApiContext, companyId: number, id: number): Promise<StoredUser> {
  const user = await getUser(context, companyId, id);
  if (user.isService) throw new ApiError("conflict", `Change this service account at /api/service-accounts/${id}.`);
  return user;
}

/** Throws `not_found` if the user is already disabled or the invitation withdrawn. */
export async function disableOrWithdraw(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  id: number,
): Promise<Plan<{ id: number }>> {
  const current = await getPerson(context, caller.companyId, id);
  const state = invitationOf(current, context.clock.now());
  if (state === "withdrawn" || (state === "accepted" && !current.isActive)) throw notFound("user");
  const disabled = { ...current, isActive: false };
  if (state === "accepted") return { ...(await userChange(context, caller, current, disabled)), answer: { id } };
  requireOwnerFor(caller, current.role);
  requireNoSelfDemotion(caller, current, disabled);
  const after = constantTime(identities);
  return { writes: await withdrawal(context, identities, caller, current), answer: { id }, after };
}

/**
 * Withdraws an invitation at the identity provider, and returns the writes that then withdraw it in the table. The opposite order would
 * permit a new invitation in between, whose user the identity provider would then remove.
 */
async function withdrawal(
  context: ApiContext,
  identities: IdentityProvider,
  caller: Caller,
  current: StoredUser,
): Promise<Write[]> {
  const { companyId, id, sub, email, version } = current;
  const nowMs = context.clock.now();
  const claimKey = keys.email(email.toLowerCase());
  const found = await context.table.get(claimKey);
  const claim = found === undefined ? undefined : EmailClaim.parse(found);
  const isOurs = claim?.userId === id;
  const isPending = invitationOf(current, nowMs) === "pending";
  if (isOurs && isPending) await identities.withdraw(email);
  const dates = { version: version + 1, updatedAt: iso(nowMs) };
  const next: StoredUser = { ...current, isActive: false, isWithdrawn: true, ...dates };
  return [
    userWrite(next, equals("version", version)),
    ...(await checkedCaller(context, caller)).checks,
    // After an expired invitation, these rows may belong to another user, so the conditions check the user's id.
    ...(isPending ? [{ remove: keys.identity(sub), when: all(equals("userId", id), exists("invitedUntil")) }] : []),
    ...(isOurs ? [{ remove: claimKey, when: all(equals("userId", id), exists("invitedUntil")) }] : []),
    ...namesChange(companyId, changeOf(current, next)),
  ];
}
