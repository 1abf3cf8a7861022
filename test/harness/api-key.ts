/** Creates service accounts and API keys for tests. */
import type { ApiKeyWithSecret, NewApiKey, NewServiceAccount, ServiceAccount } from "../../docs/client/api.ts";
import { at, type Client } from "./client.ts";
import { dataOf, uniqueName } from "./shapes.ts";

/** Creates a service account, by default with the role `admin`. */
export const newAccount = async (by: Client, more: Partial<NewServiceAccount> = {}): Promise<ServiceAccount> =>
  dataOf(await by.POST("/api/service-accounts", { body: { name: uniqueName(), role: "admin", ...more } }), 201);

export async function newKeyOf(by: Client, id: number, more: Partial<NewApiKey> = {}): Promise<ApiKeyWithSecret> {
  const body: NewApiKey = { name: "Production", scopes: ["prospects:read", "prospects:write"], ...more };
  return dataOf(await by.POST("/api/service-accounts/{id}/keys", { ...at(id), body }), 201);
}

/** Creates a service account that may view all prospects but is no admin, and returns the secret of a new API key of this account. */
export async function newKey(admin: Client, scopes: NewApiKey["scopes"]): Promise<string> {
  const { id } = await newAccount(admin, { role: "sales", permissions: ["canViewAllProspects"] });
  return (await newKeyOf(admin, id, { scopes })).key;
}
