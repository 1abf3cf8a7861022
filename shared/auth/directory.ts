/** The service's own user directory: token subject -> company, role, permissions. */

import * as z from "zod/mini";
import { acceptInvitation, Invited } from "#shared/auth/accept.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { unauthenticated } from "#shared/auth/token.ts";
import { keys } from "#shared/db/keys.ts";
import { StoredUser, UserRights } from "#shared/users/schema.ts";
import type { World } from "#shared/world.ts";

/** The rights stand beside the place, so that a sign-in reads one row. Users of before that have theirs in the user's own row alone. */
const Identity = z.extend(Invited, { type: z.literal("identity"), rights: z.optional(UserRights) });
type Identity = z.infer<typeof Identity>;

/** The caller behind a token's subject, as of now; a first sign-in accepts the invitation. Throws `unauthenticated` for a subject that is unknown or disabled, or whose invitation has ended. */
export async function lookUpCaller(world: Pick<World, "table" | "clock">, sub: string): Promise<Caller> {
  const { table } = world;
  const item = await table.get(keys.identity(sub));
  if (item === undefined) throw unauthenticated("The user is unknown.");
  const place = Identity.parse(item);
  const { companyId, userId } = place;
  const { isActive, role, permissions } = place.rights ?? (await ownRights(table, place));
  if (!isActive) throw unauthenticated("The user is disabled.");
  if (place.invitedUntil !== undefined && !(await acceptInvitation(world, sub, place))) {
    throw unauthenticated("The invitation has ended.");
  }
  return { companyId, userId, role, permissions };
}

const ownRights = async (table: World["table"], { companyId, userId }: Identity): Promise<UserRights> =>
  StoredUser.parse(await table.get(keys.user(companyId, userId)));
