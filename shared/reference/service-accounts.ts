/** Creates, changes and deletes service accounts. A service account is a user who cannot sign in and has a key ring. */
import { RING_ID, randomText } from "#shared/auth/api-key.ts";
import { type Caller, may, type Rights } from "#shared/auth/caller.ts";
import { readRing, ringWrite, type StoredKeyRing } from "#shared/auth/key-ring.ts";
import { type StoredUser, UserRights } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import { absent, equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, invalid, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { withPatch } from "#shared/patch.ts";
import { checkedCaller } from "#shared/reference/caller-checks.ts";
import { creatorWrites } from "#shared/reference/created-keys.ts";
import { changeOf, creationOf, freshDictionary, namesChangeAfter, nextVersion } from "#shared/reference/dictionary.ts";
import type { NewServiceAccount, ServiceAccountPatch } from "#shared/reference/service-account-schema.ts";
import { requireOwnerFor, userWrite } from "#shared/reference/user.ts";
import { getUser, listUsers } from "#shared/reference/users.ts";

/** A service account is stored as a user. The schema of the answer removes the fields that only a person has. */
export type PresentedAccount = StoredUser & { readonly name: string };

const present = (account: StoredUser): PresentedAccount => ({ ...account, name: account.lastName });

const isAccount = ({ isService, isActive }: StoredUser): boolean => isService === true && isActive;

export async function listAccounts(context: ReadContext, companyId: number): Promise<PresentedAccount[]> {
  return (await listUsers(context, companyId)).filter(isAccount).map(present);
}

export async function getAccount(context: ReadContext, companyId: number, id: number): Promise<PresentedAccount> {
  const user = await getUser(context, companyId, id);
  if (!isAccount(user)) throw notFound("service account");
  return present(user);
}

function requireSight(rights: Rights): void {
  if (may(rights, "canViewAllProspects")) return;
  const message = "must have canViewAllProspects for the role sales, because a service account has no own prospects";
  throw invalid(`permissions ${message}.`, { pointer: "/permissions", code: "invalid_value", message });
}

export async function createAccount(
  context: ApiContext,
  caller: Caller,
  { name, ...rights }: NewServiceAccount,
): Promise<Plan<PresentedAccount>> {
  requireOwnerFor(caller, rights.role);
  requireSight(rights);
  const { companyId } = caller;
  const [id, dictionary] = await Promise.all([context.ids.next(), freshDictionary(context, companyId)]);
  const ever = [...dictionary.users.values()].filter(({ isService }) => isService);
  if (ever.filter(isAccount).length >= limits.serviceAccounts) {
    throw new ApiError("conflict", `A company may have at most ${limits.serviceAccounts} service accounts.`);
  }
  if (ever.length >= limits.serviceAccountsEver) {
    const detail = `A company may create at most ${limits.serviceAccountsEver} service accounts, deleted ones included.`;
    throw new ApiError("conflict", detail);
  }
  const now = iso(context.clock.now());
  const account: StoredUser = {
    type: "user",
    id,
    companyId,
    firstName: "",
    lastName: name,
    email: `service-account-${id}@users.invalid`,
    ...rights,
    isActive: true,
    isService: true,
    sub: randomText(RING_ID),
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const ring: StoredKeyRing = {
    type: "keyRing",
    id: account.sub,
    companyId,
    userId: id,
    rights: UserRights.parse(account),
    keys: [],
    version: 1,
    updatedAt: now,
  };
  const { checks } = await checkedCaller(context, caller);
  return {
    writes: [
      ...namesChangeAfter(dictionary, companyId, creationOf(account)),
      userWrite(account),
      ...checks,
      { put: { ...keys.keyRing(ring.id), ...ring }, when: absent },
    ],
    answer: present(account),
  };
}

export async function changeAccount(
  context: ApiContext,
  caller: Caller,
  id: number,
  { name: lastName, ...rights }: ServiceAccountPatch,
): Promise<Plan<PresentedAccount>> {
  const { name: _, ...current } = await getAccount(context, caller.companyId, id);
  const next = withPatch(current, { ...rights, lastName });
  requireSight(next);
  return accountChange(context, caller, current, next);
}

/** Deletes a service account and revokes all its keys. */
export async function deleteAccount(context: ApiContext, caller: Caller, id: number): Promise<Plan<{ id: number }>> {
  const { name: _, ...current } = await getAccount(context, caller.companyId, id);
  const plan = await accountChange(context, caller, current, { ...current, isActive: false });
  return { ...plan, answer: { id } };
}

async function accountChange(
  context: ApiContext,
  caller: Caller,
  current: StoredUser,
  changed: StoredUser,
): Promise<Plan<PresentedAccount>> {
  if (JSON.stringify(current) === JSON.stringify(changed)) return unchanged(present(current));
  requireOwnerFor(caller, current.role, changed.role);
  const now = iso(context.clock.now());
  const next = nextVersion(current, { ...changed, updatedAt: now });
  const dictionary = await freshDictionary(context, caller.companyId);
  const ring = await readRing(context, current);
  const others = await creatorWrites(context, dictionary, current, next, ring);
  const own = others.own ?? ring;
  const after = { rights: UserRights.parse(next), keys: next.isActive ? own.keys : [] };
  const writes = [
    userWrite(next, equals("version", current.version)),
    ringWrite(ring, after, now),
    ...others.writes,
    ...namesChangeAfter(dictionary, caller.companyId, changeOf(current, next)),
  ];
  const { checks } = await checkedCaller(context, caller, writes);
  return { writes: [...writes, ...checks], answer: present(next) };
}
