/**
 * Lowers the rights of API keys when a user who is responsible for them (a sponsor) loses rights. The transaction that changes the user
 * also changes these keys, so an API key never has more rights than its sponsors.
 */
import { common, effectivePermissions, isBelow } from "#shared/auth/caller.ts";
import { isLive, isUnchanged, ringWrite, StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { ReadContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/** True if the user was disabled, or lost the role or a permission. */
export const losesRights = (before: StoredUser, after: StoredUser): boolean =>
  isDegraded(before, after) || effectivePermissions(before).length > common(before, after).permissions.length;

/** True if the keys of which the user is a sponsor become orphaned. */
const isDegraded = (before: StoredUser, after: StoredUser): boolean =>
  (before.isActive && !after.isActive) || isBelow(after.role, before.role);

/**
 * Returns the writes that lower the keys of a user who loses rights. A key ring without keys of the user gets a check that it is unchanged.
 * The transaction must also check that the dictionary is unchanged, because a new account has a new ring. The ring `exceptFor` gets no
 * write: the caller must write its changed form, `own`.
 */
export async function creatorWrites(
  { table }: Pick<ReadContext, "table">,
  { users }: Dictionary,
  before: StoredUser,
  after: StoredUser,
  exceptFor?: Pick<StoredKeyRing, "id">,
): Promise<{ writes: Write[]; own?: StoredKeyRing | undefined }> {
  if (!losesRights(before, after)) return { writes: [] };
  const accounts = [...users.values()].filter(({ isService, isActive }) => isService && isActive);
  const rows = await table.batchGet(accounts.map(({ sub }) => keys.keyRing(sub)));
  const changes = rows.map((row) => {
    const ring = StoredKeyRing.parse(row);
    return { ring, lowered: lowered(ring, before, after) };
  });
  const others = changes.filter(({ ring }) => ring.id !== exceptFor?.id);
  return {
    writes: others.map(({ ring, lowered }) =>
      lowered === ring
        ? { check: keys.keyRing(ring.id), when: isUnchanged(ring) }
        : ringWrite(ring, lowered, after.updatedAt),
    ),
    own: changes.find(({ ring }) => ring.id === exceptFor?.id)?.lowered,
  };
}

function lowered(ring: StoredKeyRing, before: StoredUser, after: StoredUser): StoredKeyRing {
  if (!ring.keys.some(({ sponsors }) => sponsors.includes(after.id))) return ring;
  const orphanedAt = isDegraded(before, after) ? after.updatedAt : undefined;
  const changed = ring.keys.map((key) =>
    key.sponsors.includes(after.id) && isLive(key, Date.parse(after.updatedAt))
      ? { ...key, creatorRights: common(key.creatorRights, after), orphanedAt: key.orphanedAt ?? orphanedAt }
      : key,
  );
  return { ...ring, keys: changed };
}
