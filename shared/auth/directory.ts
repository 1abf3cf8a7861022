/** The service's own user directory: token subject -> company, role, permissions. A revoked user is out within a minute. */

import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { unauthenticated } from "#shared/auth/token.ts";
import { keys } from "#shared/db/keys.ts";
import { limits } from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";
import { StoredUser, UserRights } from "#shared/users/schema.ts";
import type { World } from "#shared/world.ts";

/** The rights stand beside the place, so that a sign-in reads one row. Users of before that have theirs in the user's own row alone. */
const Identity = z.object({
  type: z.literal("identity"),
  companyId: Id,
  userId: Id,
  rights: z.optional(UserRights),
});
type Identity = z.infer<typeof Identity>;

const CACHE_ENTRIES = 5_000;
const callers = new Map<string, { caller: Caller; until: number }>();

/** The caller behind a token's subject. Throws `unauthenticated` for a subject that is unknown or disabled. */
export async function lookUpCaller(world: World, sub: string): Promise<Caller> {
  const now = world.clock.now();
  const kept = callers.get(sub);
  if (kept !== undefined && kept.until > now) return kept.caller;
  callers.delete(sub);

  const item = await world.table.get(keys.identity(sub));
  if (item === undefined) throw unauthenticated("The user is unknown.");
  const place = Identity.parse(item);
  const { companyId, userId } = place;
  const { isActive, role, permissions } = place.rights ?? (await ownRights(world, place));
  if (!isActive) throw unauthenticated("The user is disabled.");
  const caller = { companyId, userId, role, permissions };
  keep(callers, sub, { caller, until: now + limits.callerCacheMs });
  return caller;
}

const ownRights = async ({ table }: World, { companyId, userId }: Identity): Promise<UserRights> =>
  StoredUser.parse(await table.get(keys.user(companyId, userId)));

/** Bounded: the oldest entry makes room. */
function keep<V>(cache: Map<string, V>, key: string, value: V): void {
  if (cache.size >= CACHE_ENTRIES) {
    const oldest = cache.keys().next();
    if (oldest.done !== true) cache.delete(oldest.value);
  }
  cache.set(key, value);
}
