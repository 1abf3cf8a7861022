/** The service's own user directory: token subject -> company, role, permissions. */

import * as z from "zod/mini";
import { acceptInvitation, Invited } from "#shared/auth/accept.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { unauthenticated } from "#shared/auth/token.ts";
import { StoredUser, UserRights } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";

/** The rights stand beside the place, so that a sign-in reads one row. Users of before that have theirs in the user's own row alone. */
const Identity = z.extend(Invited, { type: z.literal("identity"), rights: z.optional(UserRights) });
type Identity = z.infer<typeof Identity>;

/** The caller behind a token's subject, as of now; a first sign-in accepts the invitation. Throws `unauthenticated` for a subject that is unknown or disabled, or whose invitation has ended. */
export async function lookUpCaller(context: Pick<ApiContext, "table" | "clock">, sub: string): Promise<Caller> {
  const { table } = context;
  const item = await table.get(keys.identity(sub));
  if (item === undefined) throw unauthenticated("The user is unknown.");
  const place = Identity.parse(item);
  const { companyId, userId } = place;
  const { isActive, role, permissions } = place.rights ?? (await ownRights(table, place));
  if (!isActive) throw unauthenticated("The user is disabled.");
  if (place.invitedUntil !== undefined && !(await acceptInvitation(context, sub, place))) {
    throw unauthenticated("The invitation has ended.");
  }
  return { companyId, userId, role, permissions };
}

const ownRights = async (table: ApiContext["table"], { companyId, userId }: Identity): Promise<UserRights> =>
  StoredUser.parse(await table.get(keys.user(companyId, userId)));
