/** Suspends and resumes a company. The API refuses the users of a suspended company, but its deliveries and unfinished imports continue. */
import * as z from "zod/mini";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { type Clock, iso } from "#shared/clock.ts";
import { all, type Change, equals, exists, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { StoredCompany } from "#shared/reference/schema.ts";

/** The row of a company, with the fields that only the commands in this folder set. */
export const MarkedCompany = z.extend(StoredCompany, {
  suspendedAt: z.optional(z.string()),
  /** The time at which the erasure began. A company with this field cannot be resumed. */
  erasingAt: z.optional(z.string()),
  rowsBefore: z.optional(z.record(z.string(), z.int())),
});
export type MarkedCompany = z.infer<typeof MarkedCompany>;

export async function markedCompany(table: Table, companyId: number): Promise<MarkedCompany | undefined> {
  const item = await table.get(keys.company(companyId));
  return item === undefined ? undefined : MarkedCompany.parse(item);
}

export async function known(table: Table, companyId: number): Promise<MarkedCompany> {
  const company = await markedCompany(table, companyId);
  if (company === undefined) throw new Error(`company ${companyId} is unknown`);
  return company;
}

interface Context {
  readonly table: Table;
  readonly clock: Clock;
}

/** Suspends a company and its users. Returns the number of users. A repeated call includes users that were created during the first one. */
export async function suspend({ table, clock }: Context, companyId: number): Promise<number> {
  await known(table, companyId);
  const suspendedAt = iso(clock.now());
  await unlessRefused(() =>
    table.write({
      update: keys.company(companyId),
      change: { set: { suspendedAt } },
      when: all(present, missing("suspendedAt")),
    }),
  );
  return markUsers(table, companyId, { set: { suspendedAt } });
}

/** Resumes the users before the company, so an interrupted call leaves the company suspended. Returns the number of users. */
export async function resume({ table }: Context, companyId: number): Promise<number> {
  const { erasingAt } = await known(table, companyId);
  if (erasingAt !== undefined) {
    throw new Error(`company ${companyId} cannot be resumed: its erasure began at ${erasingAt}`);
  }
  const users = await markUsers(table, companyId, { remove: ["suspendedAt"] });
  await unlessRefused(() =>
    table.write({
      update: keys.company(companyId),
      change: { remove: ["suspendedAt"] },
      when: exists("suspendedAt"),
    }),
  );
  return users;
}

export async function* usersOf(table: Table, companyId: number): AsyncGenerator<StoredUser> {
  for await (const item of table.query({ ...keys.reference(companyId), begins: "USER#" })) yield StoredUser.parse(item);
}

async function markUsers(table: Table, companyId: number, change: Change): Promise<number> {
  let users = 0;
  for await (const user of usersOf(table, companyId)) {
    // A user whose invitation was withdrawn may have no identity row, which makes the condition fail.
    const rights = user.isService ? keys.keyRing(user.sub) : keys.identity(user.sub);
    await unlessRefused(() => table.write({ update: rights, change, when: equals("userId", user.id) }));
    users++;
  }
  return users;
}

/** Calls `write`. Ignores a failed condition, because it means that there is nothing to change. */
export async function unlessRefused(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
  }
}
