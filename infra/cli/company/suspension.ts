/**
 * Suspends and resumes a company. The API refuses the requests of users of a suspended company. Webhook deliveries and unfinished imports
 * continue, because they result from earlier requests.
 */
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
  /** The time at which the erasure of the company began. A company with this field cannot be resumed. */
  erasingAt: z.optional(z.string()),
  /** The numbers of the company's rows by type at the time when the erasure began. */
  rowsBefore: z.optional(z.record(z.string(), z.int())),
});
export type MarkedCompany = z.infer<typeof MarkedCompany>;

/** Thrown if a command refuses its work and has changed nothing. The message gives the reason. */
export class CommandRefused extends Error {}

export async function markedCompany(table: Table, companyId: number): Promise<MarkedCompany | undefined> {
  const item = await table.get(keys.company(companyId));
  return item === undefined ? undefined : MarkedCompany.parse(item);
}

export async function known(table: Table, companyId: number): Promise<MarkedCompany> {
  const company = await markedCompany(table, companyId);
  if (company === undefined) throw new CommandRefused(`company ${companyId} is unknown`);
  return company;
}

interface Context {
  readonly table: Table;
  readonly clock: Clock;
}

/**
 * Marks first the company and then each of its users as suspended. A repeated call also marks users that were created during the first
 * call. Returns the number of users.
 */
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

/**
 * Ends the suspension: removes its mark first from each user, so that the API accepts their requests again, and then from the company. If
 * the call is interrupted, the company is still marked, and the call can be repeated. Returns the number of users.
 */
export async function resume({ table }: Context, companyId: number): Promise<number> {
  const { erasingAt } = await known(table, companyId);
  if (erasingAt !== undefined) {
    throw new CommandRefused(`company ${companyId} cannot be resumed: its erasure began at ${erasingAt}`);
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
  for await (const { id, sub } of usersOf(table, companyId)) {
    // A user whose invitation was withdrawn may have no identity row (the row with which the authorizer finds a user by the token's
    // subject). The condition of the write then fails, and `unlessRefused` ignores this failure.
    await unlessRefused(() => table.write({ update: keys.identity(sub), change, when: equals("userId", id) }));
    users++;
  }
  return users;
}

/** Executes a write. Ignores the error if the condition of the write is not met, because there is then nothing to change. */
async function unlessRefused(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
  }
}
