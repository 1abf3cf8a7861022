/**
 * The stored row of a key ring, which holds all keys of a service account. Authentication reads only this row, so it contains copies of the
 * rights of the account and of the creators of the keys. One transaction changes a right and all its copies.
 */
import * as z from "zod/mini";
import { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role, type StoredUser, UserRights } from "#shared/auth/user-schema.ts";
import type { ReadContext } from "#shared/context.ts";
import { type Condition, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const StoredKey = z.object({
  id: z.string(),
  name: z.string(),
  /** The SHA-256 hash of the key. */
  digest: z.string(),
  last4: z.string(),
  scopes: z.array(Scope),
  createdBy: Id,
  /** The users who answer for the key: its creator, and if a key has created it, also those who answer for that key. */
  sponsors: z.array(Id),
  /** The rights of the creator at the creation of the key, or lower ones since. */
  creatorRights: z.object({ role: Role, permissions: z.array(Permission) }),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  /** The time at which a sponsor lost the role or was disabled. */
  orphanedAt: z.optional(Timestamp),
  /** The key that replaces this one after a rotation. */
  replacedBy: z.optional(z.string()),
  /** The last notice about the expiry, in days before it. */
  noticeDays: z.optional(z.int()),
});
export type StoredKey = z.infer<typeof StoredKey>;

export const StoredKeyRing = z.object({
  type: z.literal("keyRing"),
  id: z.string(),
  companyId: Id,
  /** The service account. */
  userId: Id,
  rights: UserRights,
  /** The time at which an operator suspended the company. */
  suspendedAt: z.optional(z.string()),
  keys: z.array(StoredKey),
  /** When the keys were used, by the id of the key. At most every 15 minutes, a use writes its time. */
  lastUsed: z.optional(z.record(z.string(), Timestamp)),
  version: z.int(),
  updatedAt: Timestamp,
});
export type StoredKeyRing = z.infer<typeof StoredKeyRing>;

/** A key without a creator who answers for it ends early. */
export const endOf = ({ expiresAt, orphanedAt }: Pick<StoredKey, "expiresAt" | "orphanedAt">): number => {
  const end = Date.parse(expiresAt);
  return orphanedAt === undefined ? end : Math.min(end, Date.parse(orphanedAt) + limits.orphanedKeyMs);
};

export const isLive = (key: Pick<StoredKey, "expiresAt" | "orphanedAt">, nowMs: number): boolean => endOf(key) > nowMs;

export async function readRing({ table }: Pick<ReadContext, "table">, { sub }: StoredUser): Promise<StoredKeyRing> {
  return StoredKeyRing.parse(await table.get(keys.keyRing(sub)));
}

/** Ended keys stay in the list, which shows when they were used, up to this number together with the others. */
export const KEPT = 10;

/** Changes the keys or the rights of a ring. The condition is that it has not changed since `before` was read. */
export function ringWrite(before: StoredKeyRing, after: Pick<StoredKeyRing, "keys" | "rights">, now: string): Write {
  const nowMs = Date.parse(now);
  const live = after.keys.filter((key) => isLive(key, nowMs));
  const ended = after.keys.filter((key) => !isLive(key, nowMs));
  const kept = ended.slice(Math.max(0, ended.length + live.length - KEPT));
  const set = { keys: [...kept, ...live], rights: after.rights, version: before.version + 1, updatedAt: now };
  return { update: keys.keyRing(before.id), change: { set }, when: isUnchanged(before) };
}

/** The condition that no key and no right of the ring has changed since it was read. */
export const isUnchanged = ({ version }: StoredKeyRing): Condition => equals("version", version);
