/** A company with people, service accounts and API keys on a real table, and a clock that the test sets. */
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import type { Scope } from "#shared/auth/scopes.ts";
import type { Role } from "#shared/auth/user-schema.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import type { ApiKeyWithSecret, NewApiKey } from "#shared/reference/service-account-schema.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import { createAccount, createKey, createUser } from "../harness/verbs.ts";
import { callerOf, newOwner } from "../harness/warm-function.ts";

export const START = Date.UTC(2026, 5, 15);

let people = 0;

export async function newStage(db: FaultyDynamoDb) {
  const clock = { ms: START };
  const time = { now: () => clock.ms };
  const context: ApiContext = contextOn(db.direct, time);
  /** A context whose calls are counted in `db.calls`. Planned faults affect it. */
  const counted: ApiContext = contextOn(db.table, time);
  const owner = await newOwner(context);
  const signIn = (key: string, on: ApiContext = context): Promise<Caller> => callerOfKey(on, key);
  return {
    clock,
    context,
    counted,
    owner,
    signIn,
    newAdmin: async (role: Role = "admin"): Promise<Caller> => {
      const email = `person-${people++}@keys.test`;
      const person = { email, firstName: "P", lastName: "Q", role, permissions: [] };
      const user = await createUser(context, memoryIdentities(), owner, person);
      await lookUpCaller(context, user.sub);
      return callerOf(user);
    },
    newAccount: async (role: Role = "admin", by: Caller = owner): Promise<number> =>
      (await createAccount(context, by, { name: "program", role, permissions: ["canViewAllProspects"] })).id,
    newKey: (id: number, by: Caller = owner, more: Partial<NewApiKey> = {}): Promise<ApiKeyWithSecret> =>
      createKey(context, by, id, { name: "k", scopes: ["prospects:read"], ...more }),
  };
}
export type Stage = Awaited<ReturnType<typeof newStage>>;

/** Returns a stage with a service account that has one key. */
export async function newStageWithKey(db: FaultyDynamoDb) {
  const stage = await newStage(db);
  const account = await stage.newAccount();
  return { ...stage, account, ...(await stage.newKey(account)) };
}
export type StageWithKey = Awaited<ReturnType<typeof newStageWithKey>>;

export const MANAGING: Scope[] = ["keys:manage", "prospects:read"];

export const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => {
      if (error instanceof ApiError) return error.code;
      throw error;
    },
  );
