/** Creates, rotates, revokes and lists the API keys of a service account. They are in one row, the account's key ring. */
import { digestOf, newKey, newKeyId } from "#shared/auth/api-key.ts";
import { type Caller, common, effectivePermissions } from "#shared/auth/caller.ts";
import { endOf, isLive, KEPT, readRing, ringWrite, type StoredKey, type StoredKeyRing } from "#shared/auth/key-ring.ts";
import { requireScope } from "#shared/auth/scopes.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError, invalid, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { checkedCaller } from "#shared/reference/caller-checks.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import type { ApiKey, ApiKeyWithSecret, NewApiKey, Rotation } from "#shared/reference/service-account-schema.ts";
import { getAccount } from "#shared/reference/service-accounts.ts";
import { requireOwnerFor } from "#shared/reference/user.ts";
import { getUser, userSummary } from "#shared/reference/users.ts";

export function presentKey(key: StoredKey, ring: StoredKeyRing, creator: StoredUser | undefined): ApiKey {
  const { id, name, last4, scopes, createdAt, orphanedAt = null, replacedBy = null } = key;
  return {
    ...{ id, name, last4, scopes, createdAt, orphanedAt, replacedBy },
    createdBy: userSummary(creator),
    expiresAt: iso(endOf(key)),
    lastUsedAt: ring.lastUsed?.[id] ?? null,
  };
}

/** Lists ended keys too, until newer keys take their place. */
export async function listKeys(context: ReadContext, companyId: number, id: number): Promise<ApiKey[]> {
  const ring = await readRing(context, await getAccount(context, companyId, id));
  const { users } = await currentDictionary(context, companyId);
  return ring.keys.map((key) => presentKey(key, ring, users.get(key.createdBy)));
}

/** The fields by which a caller becomes responsible for a key. */
type Sponsored = Pick<StoredKey, "createdBy" | "sponsors" | "creatorRights" | "orphanedAt">;

type Opened = Awaited<ReturnType<typeof open>>;

async function open(context: ApiContext, caller: Caller, id: number) {
  const ring = await readRing(context, await getAccount(context, caller.companyId, id));
  // Another request has deleted the account between the read of the account and the read of its ring.
  if (!ring.rights.isActive) throw notFound("service account");
  const nowMs = context.clock.now();
  const live = ring.keys.filter((key) => isLive(key, nowMs));
  return { ring, nowMs, live };
}

function keyOf(ring: StoredKeyRing, keyId: string): StoredKey {
  const key = ring.keys.find(({ id }) => id === keyId);
  if (key === undefined) throw notFound("key");
  return key;
}

/** Throws `permission_denied` or `insufficient_scope` for rights that the caller does not have. */
function requireRights(caller: Caller, { role }: Pick<Caller, "role">, { scopes }: Pick<NewApiKey, "scopes">): void {
  requireOwnerFor(caller, role);
  for (const scope of scopes) requireScope(caller, scope);
}

/** `change` gets the fields by which the caller becomes a sponsor of a key. If the caller uses an API key, they name its sponsors too. */
async function planOf<Answer>(
  context: ApiContext,
  caller: Caller,
  { ring, nowMs }: Opened,
  change: (fields: Sponsored) => readonly [keys: StoredKey[], answer: Answer],
): Promise<Plan<Answer>> {
  const { checks, key } = await checkedCaller(context, caller, [ringWrite(ring, ring, iso(nowMs))]);
  const [after, answer] = change({
    createdBy: caller.userId,
    sponsors: [...new Set([caller.userId, ...(key?.sponsors ?? [])])],
    creatorRights: { role: caller.role, permissions: effectivePermissions(caller) },
    orphanedAt: undefined,
  });
  return { writes: [...checks, ringWrite(ring, { keys: after, rights: ring.rights }, iso(nowMs))], answer };
}

/** Throws `conflict` if the account has too many keys. The key `besides` and keys that are replaced by newer ones do not count. */
function requireRoom({ live }: Opened, besides?: StoredKey): void {
  const others = live.filter((key) => key !== besides && key.replacedBy === undefined);
  if (others.length < limits.keysPerAccount && live.length < KEPT) return;
  const detail = `A service account may have at most ${limits.keysPerAccount} keys. Revoke one that is not used.`;
  throw new ApiError("conflict", detail);
}

function endAfter(nowMs: number, expiresAt: string | undefined): string {
  const end = expiresAt === undefined ? nowMs + limits.keyMs : Date.parse(expiresAt);
  if (end > nowMs && end <= nowMs + limits.keyMsMax) return iso(end);
  const message = `must be in the future, and at most ${limits.keyMsMax / 86_400_000} days from now`;
  throw invalid(`expiresAt ${message}.`, { pointer: "/expiresAt", code: "out_of_range", message });
}

/** Adds a new key to the ring's keys `kept`. Only the answer to this request shows the secret of the new key. */
async function added(
  context: ApiContext,
  caller: Caller,
  opened: Opened,
  kept: readonly StoredKey[],
  fields: Pick<StoredKey, "id" | "name" | "scopes" | "expiresAt">,
): Promise<Plan<ApiKeyWithSecret>> {
  const text = newKey(fields.id);
  const creator = await getUser(context, caller.companyId, caller.userId);
  return planOf(context, caller, opened, (answering) => {
    const key: StoredKey = {
      ...fields,
      digest: digestOf(text),
      last4: text.slice(-4),
      ...answering,
      createdAt: iso(opened.nowMs),
    };
    return [[...kept, key], { ...presentKey(key, opened.ring, creator), key: text }];
  });
}

const freshId = ({ id, version, keys: taken }: StoredKeyRing): string =>
  newKeyId(id, version, (other) => taken.some((key) => key.id === other));

export async function createKey(
  context: ApiContext,
  caller: Caller,
  id: number,
  { name, scopes, expiresAt }: NewApiKey,
): Promise<Plan<ApiKeyWithSecret>> {
  const opened = await open(context, caller, id);
  requireRights(caller, opened.ring.rights, { scopes });
  const end = endAfter(opened.nowMs, expiresAt);
  requireRoom(opened);
  const { ring } = opened;
  return added(context, caller, opened, ring.keys, { id: freshId(ring), name, scopes, expiresAt: end });
}

/** Replaces a key. The new key has the same lifetime, from now on. The old key ends after `overlapSeconds`, or earlier at its own end. */
export async function rotateKey(
  context: ApiContext,
  caller: Caller,
  id: number,
  keyId: string,
  { overlapSeconds }: Rotation,
): Promise<Plan<ApiKeyWithSecret>> {
  const opened = await open(context, caller, id);
  const { ring, nowMs } = opened;
  const old = keyOf(ring, keyId);
  requireRights(caller, common(ring.rights, old.creatorRights), old);
  if (old.replacedBy !== undefined) throw new ApiError("conflict", `The key ${old.replacedBy} has replaced this one.`);
  requireRoom(opened, old);
  const newId = freshId(ring);
  const until = Math.min(Date.parse(old.expiresAt), nowMs + overlapSeconds * 1_000);
  const replaced = { ...old, replacedBy: newId, expiresAt: iso(until) };
  const kept = ring.keys.map((key) => (key === old ? replaced : key));
  const end = nowMs + Date.parse(old.expiresAt) - Date.parse(old.createdAt);
  const { name, scopes } = old;
  return added(context, caller, opened, kept, { id: newId, name, scopes, expiresAt: iso(end) });
}

/** Makes the caller responsible for the key. The secret stays the same. API keys may not do this: a key could take over itself. */
export async function takeOverKey(
  context: ApiContext,
  caller: Caller,
  id: number,
  keyId: string,
): Promise<Plan<ApiKey>> {
  if (caller.key !== undefined) throw new ApiError("permission_denied", "Only a person can take over a key.");
  const opened = await open(context, caller, id);
  const { ring } = opened;
  const old = keyOf(ring, keyId);
  requireRights(caller, common(ring.rights, old.creatorRights), old);
  if (!opened.live.includes(old)) throw new ApiError("conflict", "The key has ended. Create a new one.");
  const creator = await getUser(context, caller.companyId, caller.userId);
  return planOf(context, caller, opened, (answering) => {
    const taken: StoredKey = { ...old, ...answering, daysLeft: undefined };
    return [ring.keys.map((key) => (key === old ? taken : key)), presentKey(taken, ring, creator)];
  });
}

export async function revokeKey(
  context: ApiContext,
  caller: Caller,
  id: number,
  keyId: string,
): Promise<Plan<{ id: string }>> {
  const opened = await open(context, caller, id);
  const { id: revoked } = keyOf(opened.ring, keyId);
  const kept = opened.ring.keys.filter((key) => key.id !== revoked);
  return planOf(context, caller, opened, () => [kept, { id: revoked }]);
}
