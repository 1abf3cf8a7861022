/** The user directory: company, role and permissions by the subject of a token. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { unauthenticated } from "#shared/auth/token.ts";
import { StoredUser, UserRights } from "#shared/auth/user-schema.ts";
import { namesChangeInHead } from "#shared/company-index/manifest.ts";
import { sharedDelta } from "#shared/company-index/write/entries.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import { above, all, equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/plan.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { Id } from "#shared/schema.ts";

/** The row of a token's subject. It has a copy of the user's rights, so authentication reads only one row. */
export const Identity = z.object({
  type: z.literal("identity"),
  companyId: Id,
  userId: Id,
  rights: UserRights,
  /** The time at which the invitation expires, in milliseconds since 1970. Undefined after the user has accepted. */
  invitedUntil: z.optional(z.int()),
  /** The time at which an operator suspended the company. Nobody can sign in to a suspended company. */
  suspendedAt: z.optional(z.string()),
  /** The e-mail address that the invitation reserves, in lower case. Undefined after the first sign-in, or if another company has it. */
  email: z.optional(z.string()),
});
type Identity = z.infer<typeof Identity>;

/** Returns the user with a token subject, and accepts an invitation. Throws `unauthenticated` if one of these or the company is invalid. */
export async function lookUpCaller(context: Pick<ApiContext, "table" | "clock">, sub: string): Promise<Caller> {
  const { table } = context;
  const item = await table.get(keys.identity(sub));
  if (item === undefined) throw unauthenticated("The user is unknown.");
  const identity = Identity.parse(item);
  const { companyId, userId } = identity;
  const { isActive, role, permissions } = identity.rights;
  if (!isActive) throw unauthenticated("The user is disabled.");
  if (identity.suspendedAt !== undefined) throw unauthenticated("The company is suspended.");
  if (identity.invitedUntil !== undefined && !(await acceptInvitation(context, sub, identity))) {
    throw unauthenticated("The invitation has ended.");
  }
  return { companyId, userId, role, permissions };
}

const USER = 1;

/** Removes the expiry from all rows of the invitation. Returns false if the invitation has expired or was withdrawn. */
async function acceptInvitation(
  { table, clock }: Pick<ApiContext, "table" | "clock">,
  sub: string,
  { companyId, userId, email }: Identity,
): Promise<boolean> {
  const own = equals("userId", userId);
  const attempt = async (): Promise<boolean> => {
    const user = await table.get(keys.user(companyId, userId));
    if (user === undefined) return false;
    const { version } = StoredUser.parse(user);
    const accepted = { remove: ["invitedUntil", "email"] };
    const writes: Write[] = [
      { update: keys.identity(sub), change: accepted, when: all(own, above("invitedUntil", clock.now())) },
      {
        update: keys.user(companyId, userId),
        change: { remove: ["invitedUntil"], add: { version: 1 } },
        when: equals("version", version),
      },
      // Readers notice by `dictionaryVersion` that their cached users are outdated. `sharedDelta` adds the user to the change log.
      { update: keys.company(companyId), change: { add: { dictionaryVersion: 1 } } },
      namesChangeInHead(companyId),
      sharedDelta(companyId, {
        kind: "user",
        id: userId,
        version: version + 1,
        isDeleted: false,
        isShownElsewhere: false,
      }),
    ];
    if (email !== undefined) {
      writes.push({ update: keys.email(email), change: { remove: ["invitedUntil", "expiresAt"] }, when: own });
    }
    await table.transact(writes);
    return true;
  };
  try {
    return await optimistic(attempt, ({ failed }) => failed.every(({ index }) => index === USER));
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    const item = await table.get(keys.identity(sub));
    const now = item === undefined ? undefined : Identity.parse(item);
    return now?.userId === userId && now.invitedUntil === undefined;
  }
}
