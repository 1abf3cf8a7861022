/** Creates companies for tests, and contexts of warm functions. The contexts share one table, but each has its own caches. */
import type { Caller } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { Clock } from "#shared/clock.ts";
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

const ownerCaller = ({ companyId, id: userId }: StoredUser): Caller => ({
  companyId,
  userId,
  role: "owner",
  permissions: [],
});

export const newOwner = async (context: ApiContext): Promise<Caller> => ownerCaller(await foundCompany(context));

export async function newCompany(context: ApiContext): Promise<Company> {
  const owner = await foundCompany(context);
  const repId = await context.ids.next();
  const [sub, email] = [`${owner.sub}-rep`, `rep-of-${owner.email}`];
  const rep = { ...owner, id: repId, sub, email, role: "sales" as const };
  await context.table.transact(newUserWrites(rep));
  return { caller: ownerCaller(owner), repId };
}
