/** Authenticates a request by an API key. */
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { digestOf, hasChecksum, idOf, isSame, ringOf } from "#shared/auth/api-key.ts";
import { type Caller, common } from "#shared/auth/caller.ts";
import { isLive, isUnchanged, type StoredKey, StoredKeyRing } from "#shared/auth/key-ring.ts";
import { TokenRefused } from "#shared/auth/token.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";

/** Milliseconds that a request waits, at most, while the time of its key's use is stored. */
const USE_MS = 500;

type Context = Pick<ApiContext, "table" | "clock">;

interface Refused {
  readonly ring: StoredKeyRing | undefined;
  readonly at: number;
}
/** The last refusal of each key id. Because of this cache, repeated guesses of a key's secret cost only one read a minute. */
const refusals = new LRUCache<string, Refused>({ max: 10_000 });

/** Returns the caller of an API key. All invalid keys get the same refusal after the same reads, so it does not show which keys exist. */
export async function callerOfKey(context: Context, text: string): Promise<Caller> {
  if (!hasChecksum(text)) throw refused();
  const id = idOf(text);
  const nowMs = context.clock.now();
  const earlier = refusals.get(id);
  const isRecent = earlier !== undefined && nowMs - earlier.at < limits.authorizationCacheSeconds * 1_000;
  if (isRecent && matching(earlier.ring, text, nowMs) === undefined) throw refused();
  const item = await context.table.get(keys.keyRing(ringOf(id)));
  const ring = item === undefined ? undefined : StoredKeyRing.parse(item);
  const key = matching(ring, text, nowMs);
  if (ring === undefined || key === undefined) {
    refusals.set(id, { ring, at: nowMs });
    throw refused();
  }
  await noteUse(context, ring, key, nowMs);
  const { companyId, userId, rights } = ring;
  return { companyId, userId, ...common(rights, key.creatorRights), key: { id, scopes: scopesOf(key) } };
}

/** If a sponsor of the key got a lower role or was disabled, the key loses the two scopes by which it could give rights to others. */
const scopesOf = ({ scopes, orphanedAt }: StoredKey): StoredKey["scopes"] =>
  orphanedAt === undefined ? scopes : scopes.filter((scope) => scope !== "keys:manage" && scope !== "users:manage");

const refused = (): TokenRefused => new TokenRefused("unknown, expired or revoked key", "The API key is not valid.");

/** Returns the stored key of the ring for an API key (`text`). Undefined if the ring has no such key, or if the key cannot be used now. */
function matching(ring: StoredKeyRing | undefined, text: string, nowMs: number): StoredKey | undefined {
  if (ring === undefined || !ring.rights.isActive || ring.suspendedAt !== undefined) return undefined;
  const digest = digestOf(text);
  return ring.keys.find((key) => isSame(key.digest, digest) && isLive(key, nowMs));
}

/** Stores the time of the key's use. If this fails or another request changes the ring, the time of an earlier use stays. */
async function noteUse({ table }: Context, ring: StoredKeyRing, { id }: StoredKey, nowMs: number): Promise<void> {
  const known = ring.lastUsed?.[id];
  if (known !== undefined && nowMs - Date.parse(known) < limits.keyUseMs) return;
  const uses = Object.entries(ring.lastUsed ?? {}).filter(([used]) => ring.keys.some((key) => key.id === used));
  const lastUsed = { ...Object.fromEntries(uses), [id]: iso(nowMs) };
  const write = table
    .write({ update: keys.keyRing(ring.id), change: { set: { lastUsed } }, when: isUnchanged(ring) })
    .catch((error: unknown) => {
      if (!(error instanceof ConditionFailed)) log.warn("use of a key not stored", errorFields(error));
    });
  await Promise.race([write, sleep(USE_MS)]);
}
