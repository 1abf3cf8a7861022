/** Compares the units of the table that the authorizer needs for an API key and for an access token. */
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { getUser } from "#shared/reference/users.ts";
import { createAccount, createKey } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { type Budget, budgetsOf } from "./budget.ts";
import type { BenchTable } from "./table.ts";

/** Measures a key of an account with the maximum number of keys, because one row contains all keys of an account. */
export async function authorizerBudgets(table: BenchTable): Promise<Budget[]> {
  const context = contextOn(table.open());
  const owner = await newOwner(context);
  const { sub } = await getUser(context, owner.companyId, owner.userId);
  const { id } = await createAccount(context, owner, { name: "program", role: "admin", permissions: [] });
  const fields = { name: "Production", scopes: ["prospects:read" as const, "prospects:write" as const] };
  for (let i = 1; i < limits.keysPerAccount; i++) await createKey(context, owner, id, fields);
  const { key } = await createKey(context, owner, id, fields);
  const byKey = async () => (await metered(() => callerOfKey(context, key))).usage;
  const [first, ofKey] = [await byKey(), await byKey()];
  const ofToken = (await metered(() => lookUpCaller(context, sub))).usage;
  const line = budgetsOf("");
  return [
    line(3, "authorizer with an access token, read units", 1, ofToken.readUnits),
    line(3, "authorizer with an API key, read units", 1, ofKey.readUnits),
    line(3, "authorizer with an API key, write units in 15 minutes", 2, first.writeUnits + ofKey.writeUnits),
  ];
}
