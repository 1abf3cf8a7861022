/** Creates API keys for tests. */
import type { NewApiKey } from "../../docs/client/api.ts";
import { at, type Client } from "./client.ts";
import { dataOf, uniqueName } from "./shapes.ts";

/** Creates a service account with one key, and returns the secret of the key. The account may view all prospects, and is no admin. */
export async function newKey(admin: Client, scopes: NewApiKey["scopes"]): Promise<string> {
  const account = { name: uniqueName(), role: "sales" as const, permissions: ["canViewAllProspects" as const] };
  const { id } = dataOf(await admin.POST("/api/service-accounts", { body: account }), 201);
  const body = { name: "test", scopes };
  return dataOf(await admin.POST("/api/service-accounts/{id}/keys", { ...at(id), body }), 201).key;
}
