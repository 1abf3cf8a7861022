/** Creates API keys for tests. */
import type { NewApiKey, NewServiceAccount } from "../../docs/client/api.ts";
import { at, type Client } from "./client.ts";
import { dataOf, uniqueName } from "./shapes.ts";

const everything: Omit<NewServiceAccount, "name"> = { role: "sales", permissions: ["canViewAllProspects"] };

/** Creates a service account with one key, and returns the secret of the key. The account may view all prospects, and is no admin. */
export async function newKey(admin: Client, scopes: NewApiKey["scopes"], rights = everything): Promise<string> {
  const account = dataOf(await admin.POST("/api/service-accounts", { body: { name: uniqueName(), ...rights } }), 201);
  const body = { name: "test", scopes };
  return dataOf(await admin.POST("/api/service-accounts/{id}/keys", { ...at(account.id), body }), 201).key;
}
