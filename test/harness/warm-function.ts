/** Creates companies for tests, and contexts of warm functions. The contexts share one table, but each has its own caches. */
import type { Caller } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { type Clock, iso } from "#shared/clock.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { newUserWrites } from "#shared/reference/user.ts";
import { type FaultyDynamoDb, TABLE } from "./faulty-dynamodb.ts";
import { plainClient } from "./plain-dynamodb.ts";

export const warmFunction = (db: FaultyDynamoDb, clock: Clock): ApiContext =>
  contextOn(openTable(TABLE, plainClient(db.directEndpoint)), clock);

export interface Company {
  readonly caller: Caller;
  readonly repId: number;
}

let companies = 0;

async function foundCompany(context: ApiContext) {
  const sub = `company-${companies++}`;
  const owner = { email: `${sub}@x.test`, firstName: "A", lastName: "B", sub };
  return (await createCompany(context, { name: "X", owner })).owner;
}

export const callerOf = (user: Pick<StoredUser, "companyId" | "id" | "role" | "permissions">): Caller => ({
  companyId: user.companyId,
  userId: user.id,
  role: user.role,
  permissions: user.permissions,
});

export const newOwner = async (context: ApiContext): Promise<Caller> => callerOf(await foundCompany(context));

export async function newCompany(context: ApiContext): Promise<Company> {
  const owner = await foundCompany(context);
  const { companyId, email, firstName, lastName } = owner;
  const repId = await addRep(context, companyId, { email: `rep-of-${email}`, firstName, lastName });
  return { caller: callerOf(owner), repId };
}

type Named = Pick<StoredUser, "email" | "firstName" | "lastName"> & Partial<Pick<StoredUser, "permissions">>;

/** Creates a sales user, whose subject (the id at the identity provider) is the e-mail address. Returns the id of the user. */
export async function addRep(context: ApiContext, companyId: number, named: Named): Promise<number> {
  const [id, now] = [await context.ids.next(), iso(context.clock.now())];
  const dated = { createdAt: now, updatedAt: now, version: 1 };
  const user = { type: "user", id, companyId, sub: named.email, role: "sales", isActive: true, ...dated } as const;
  await context.table.transact(newUserWrites({ ...user, permissions: [], ...named }));
  return id;
}
