/** Functions of their own on one table, and companies for them: nothing that one keeps in memory is known to another. */
import type { Caller } from "#shared/auth/caller.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import type { Clock } from "#shared/clock.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { newUserWrites } from "#shared/reference/user.ts";
import { type FaultyDynamoDb, patient, TABLE } from "./faulty-dynamodb.ts";

export function warmFunction(db: FaultyDynamoDb, clock: Clock): ApiContext {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: db.directEndpoint, region: "us-east-1", credentials, ...patient });
  return contextOn(openTable(TABLE, client), clock);
}

export interface Company {
  /** Its owner. */
  readonly caller: Caller;
  readonly repId: number;
}

let companies = 0;

export async function newCompany(context: ApiContext): Promise<Company> {
  const sub = `company-${companies++}`;
  const owner = { email: `${sub}@x.test`, firstName: "A", lastName: "B", sub };
  const made = await createCompany(context, { name: "X", owner });
  const companyId = made.company.id;
  const repId = await context.ids.next();
  const rep = { ...made.owner, id: repId, sub: `${sub}-rep`, email: `${sub}-rep@x.test`, role: "sales" as const };
  await context.table.transact(newUserWrites(rep));
  return { caller: { companyId, userId: made.owner.id, role: "owner", permissions: [] }, repId };
}
