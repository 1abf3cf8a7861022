/** The service's own user directory: token subject -> company, role, permissions. */

import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { unauthenticated } from "#shared/auth/token.ts";
import { keys } from "#shared/db/keys.ts";
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

/** The caller behind a token's subject, as of now. Throws `unauthenticated` for a subject that is unknown or disabled. */
export async function lookUpCaller({ table }: Pick<World, "table">, sub: string): Promise<Caller> {
  const item = await table.get(keys.identity(sub));
  if (item === undefined) throw unauthenticated("The user is unknown.");
  const place = Identity.parse(item);
  const { companyId, userId } = place;
  const { isActive, role, permissions } = place.rights ?? (await ownRights(table, place));
  if (!isActive) throw unauthenticated("The user is disabled.");
  return { companyId, userId, role, permissions };
}

const ownRights = async (table: World["table"], { companyId, userId }: Identity): Promise<UserRights> =>
  StoredUser.parse(await table.get(keys.user(companyId, userId)));
