/** The first sign-in of an invited user accepts the invitation: the user and the claim on the address are the company's for good. */
import * as z from "zod/mini";
import type { ApiContext } from "#shared/context.ts";
import { above, all, equals, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { Id } from "#shared/schema.ts";

/** What the place of a subject has until its user has signed in. */
export const Invited = z.object({
  companyId: Id,
  userId: Id,
  /** Milliseconds since the epoch. */
  invitedUntil: z.optional(z.int()),
  /** The address that the user has a claim on, in lower case. */
  email: z.optional(z.string()),
});
export type Invited = z.infer<typeof Invited>;

/** Written once for each user. False: the invitation has ended. Safe to repeat, and to do by many at once. */
export async function acceptInvitation(
  { table, clock }: Pick<ApiContext, "table" | "clock">,
  sub: string,
  { companyId, userId, email }: Invited,
): Promise<boolean> {
  const own = equals("userId", userId);
  const accepted = { remove: ["invitedUntil", "email"] };
  const writes: Write[] = [
    { update: keys.identity(sub), change: accepted, when: all(own, above("invitedUntil", clock.now())) },
    {
      update: keys.user(companyId, userId),
      change: { remove: ["invitedUntil"], add: { version: 1 } },
      when: present,
    },
  ];
  if (email !== undefined) {
    writes.push({ update: keys.email(email), change: { remove: ["invitedUntil", "expiresAt"] }, when: own });
  }
  try {
    await table.transact(writes);
    return true;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    const item = await table.get(keys.identity(sub));
    const now = item === undefined ? undefined : Invited.parse(item);
    return now?.userId === userId && now.invitedUntil === undefined;
  }
}
