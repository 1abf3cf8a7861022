/**
 * Checks the caller again in transactions that give rights to others. API Gateway caches callers for a minute, and a caller must not give
 * rights that the caller has lost meanwhile.
 */
import { ringOf } from "#shared/auth/api-key.ts";
import { type Caller, common, isBelow } from "#shared/auth/caller.ts";
import { isLive, isUnchanged, type StoredKey, StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { ReadContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { callerUnchanged } from "#shared/reference/user.ts";

/**
 * Returns the checks of the caller for a transaction with the writes `others`, and the caller's API key if there is one. There are no
 * checks if `others` has a write of the same row. Throws `permission_denied` if the API key has ended or lost its role.
 */
export async function checkedCaller(
  context: ReadContext,
  caller: Caller,
  others: readonly Write[] = [],
): Promise<{ checks: Write[]; key: StoredKey | undefined }> {
  const used = caller.key && (await keyInUse(context, caller, caller.key.id));
  const check: Write =
    used === undefined ? callerUnchanged(caller) : { check: keys.keyRing(used.ring.id), when: isUnchanged(used.ring) };
  const row = rowOf(check);
  return { checks: others.some((other) => rowOf(other) === row) ? [] : [check], key: used?.key };
}

async function keyInUse({ table, clock }: ReadContext, { role }: Caller, id: string) {
  const ring = StoredKeyRing.parse(await table.get(keys.keyRing(ringOf(id))));
  const key = ring.keys.find((one) => one.id === id);
  const isUsable =
    key !== undefined && ring.rights.isActive && key.orphanedAt === undefined && isLive(key, clock.now());
  if (isUsable && !isBelow(common(ring.rights, key.creatorRights).role, role)) return { ring, key };
  throw new ApiError("permission_denied", "Your key has ended, or has lost its role or its creator.");
}

function rowOf(write: Write): string {
  const { pk, sk } =
    "put" in write ? write.put : "update" in write ? write.update : "remove" in write ? write.remove : write.check;
  return `${pk} ${sk}`;
}
