/** The row with all API keys of a service account (key ring) and copies of their rights, so that authentication reads only this row. */
import * as z from "zod/mini";
import { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role, type StoredUser, UserRights } from "#shared/auth/user-schema.ts";
import { DAY_MS, iso } from "#shared/clock.ts";
import type { ReadContext } from "#shared/context.ts";
import { type Condition, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const StoredKey = z.object({
  id: z.string(),
  name: z.string(),
  digest: z.string(),
  last4: z.string(),
  scopes: z.array(Scope),
  createdBy: Id,
  /** The users who are responsible for the key: its creator, and, if an API key has created it, the sponsors of that key. */
  sponsors: z.array(Id),
  /** The rights of the creator when the key was created, without those that the creator or a sponsor has lost since. */
  creatorRights: z.object({ role: Role, permissions: z.array(Permission) }),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  /** The time at which a sponsor got a lower role or was disabled. */
  orphanedAt: z.optional(Timestamp),
  /** The key that replaces this one after a rotation. */
  replacedBy: z.optional(z.string()),
  /** The last sent reminder of the key's expiry: the number of days before the expiry at which this reminder was due. */
  daysLeft: z.optional(z.int()),
});
export type StoredKey = z.infer<typeof StoredKey>;

/** A change of an API key about which the service makes an event and sends a mail. */
const KeyNotice = z.object({ what: z.enum(["revoked", "orphaned", "expiring"]), key: StoredKey });
export type KeyNotice = z.infer<typeof KeyNotice>;

export const StoredKeyRing = z.object({
  type: z.literal("keyRing"),
  id: z.string(),
  companyId: Id,
  userId: Id,
  rights: UserRights,
  /** The time at which an operator suspended the company. */
  suspendedAt: z.optional(z.string()),
  keys: z.array(StoredKey),
  /** The times at which the keys were used, by key id. The service stores the time of a key's use at most every 15 minutes. */
  lastUsed: z.optional(z.record(z.string(), Timestamp)),
  unsent: z.optional(z.array(KeyNotice)),
  version: z.int(),
  updatedAt: Timestamp,
});
export type StoredKeyRing = z.infer<typeof StoredKeyRing>;

/** Returns the time at which a key ends, in milliseconds since 1970. An orphaned key ends early. */
export const endOf = ({ expiresAt, orphanedAt }: Pick<StoredKey, "expiresAt" | "orphanedAt">): number => {
  const end = Date.parse(expiresAt);
  return orphanedAt === undefined ? end : Math.min(end, Date.parse(orphanedAt) + limits.orphanedKeyMs);
};

export const isLive = (key: Pick<StoredKey, "expiresAt" | "orphanedAt">, nowMs: number): boolean => endOf(key) > nowMs;

export async function readRing({ table }: Pick<ReadContext, "table">, { sub }: StoredUser): Promise<StoredKeyRing> {
  return StoredKeyRing.parse(await table.get(keys.keyRing(sub)));
}

/** Maximum keys in a ring, together with ended ones. Ended keys stay while there is room, because the API shows when they were used. */
export const KEPT = 10;

/** Writes the keys and rights of a ring if it is still as in `before`. Notices about the changes are mailed to admins at `mailAt`. */
export function ringWrite(
  before: StoredKeyRing,
  { rights, ...after }: Pick<StoredKeyRing, "keys" | "rights">,
  now: string,
  mailAt = Date.parse(now),
): Write {
  const nowMs = Date.parse(now);
  const live = after.keys.filter((key) => isLive(key, nowMs));
  const ended = after.keys.filter((key) => !isLive(key, nowMs));
  const kept = ended.slice(Math.max(0, ended.length + live.length - KEPT));
  const unsent = [...(before.unsent ?? []), ...keyNotices(before.keys, after.keys, nowMs)].slice(-KEPT);
  const sweepAt = Math.min(
    unsent.length > 0 ? mailAt : Number.POSITIVE_INFINITY,
    ...live.flatMap((key) => remindersOf(key).map(({ at }) => at)),
  );
  const due = Number.isFinite(sweepAt) ? { dueShard: keys.keyShard, dueAt: iso(sweepAt) } : undefined;
  const set = { keys: [...kept, ...live], rights, unsent, version: before.version + 1, updatedAt: now, ...due };
  const remove = due === undefined ? ["dueShard", "dueAt"] : [];
  return { update: keys.keyRing(before.id), change: { set, remove }, when: isUnchanged(before) };
}

/** The reminders of a key's expiry that were not sent, each with its time. A key gets no reminder for a time before its creation. */
function remindersOf(key: StoredKey): { readonly days: number; readonly at: number }[] {
  if (key.replacedBy !== undefined) return [];
  return [14, 3, 1]
    .map((days) => ({ days, at: endOf(key) - days * DAY_MS }))
    .filter(({ days, at }) => days < (key.daysLeft ?? Number.POSITIVE_INFINITY) && at > Date.parse(key.createdAt));
}

/** Returns the key with the due reminders marked as sent. Returns the same object if none is due. */
export function reminded(key: StoredKey, nowMs: number): StoredKey {
  const due = isLive(key, nowMs) ? remindersOf(key).filter(({ at }) => at <= nowMs) : [];
  return due.length === 0 ? key : { ...key, daysLeft: Math.min(...due.map(({ days }) => days)) };
}

export const isUnchanged = ({ version }: StoredKeyRing): Condition => equals("version", version);

/** Returns notices about keys that a write of a ring revokes, orphans or reminds of. A key that is removed after its end is not revoked. */
export function keyNotices(before: readonly StoredKey[], after: readonly StoredKey[], nowMs: number): KeyNotice[] {
  return before.flatMap((was): KeyNotice[] => {
    const key = after.find(({ id }) => id === was.id);
    if (key === undefined) return isLive(was, nowMs) ? [{ what: "revoked", key: was }] : [];
    return [
      ...(was.orphanedAt === undefined && key.orphanedAt !== undefined ? [{ what: "orphaned" as const, key }] : []),
      ...(key.daysLeft !== undefined && key.daysLeft !== was.daysLeft ? [{ what: "expiring" as const, key }] : []),
    ];
  });
}
