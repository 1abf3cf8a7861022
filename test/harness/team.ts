/** Creates two companies for one test file. All test files share a local service, but each file uses only its own two companies. */
import { contextOn } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import type { NewUser } from "../../docs/client/api.ts";
import { baseUrl, type Client, clientOf } from "./client.ts";
import { tableAt } from "./faulty-dynamodb.ts";
import { outputsOf } from "./local-outputs.ts";
import { dataOf, present, uniqueName } from "./shapes.ts";

export type Team = Awaited<ReturnType<typeof newTeam>>;

export async function openLocalTable(): Promise<Table> {
  const { DynamoDbEndpoint, TableName } = await outputsOf(baseUrl());
  return tableAt(DynamoDbEndpoint, TableName);
}

/**
 * Creates two companies with users of each role. The clients whose names begin with `other` belong to the second company. `rep`, `rep2`,
 * `viewer` and `importer` are sales users: the first two without permissions, `viewer` and `importer` with one permission each.
 */
export async function newTeam() {
  const context = contextOn(await openLocalTable());
  const domain = `${uniqueName().toLowerCase()}.test`;
  const company = async (name: string): Promise<Client> => {
    const email = `owner@${name}.${domain}`;
    await createCompany(context, { name, owner: { email, firstName: "Olga", lastName: "Owner", sub: email } });
    return clientOf(email);
  };
  const [owner, otherOwner] = [await company("one"), await company("two")];
  const rep = { lastName: "Rep", role: "sales" } as const;
  const [admin, ravi, rita, viewer, importer, otherRep] = await Promise.all([
    invite(owner, "admin", { firstName: "Ada", lastName: "Admin", role: "admin" }),
    invite(owner, "rep", { ...rep, firstName: "Ravi" }),
    invite(owner, "rep2", { ...rep, firstName: "Rita" }),
    invite(owner, "viewer", { ...rep, firstName: "Vera", permissions: ["canViewAllProspects"] }),
    invite(owner, "importer", { ...rep, firstName: "Iris", permissions: ["canManageProspects"] }),
    invite(otherOwner, "rep", { ...rep, firstName: "Otto" }),
  ]);
  return { owner, admin, rep: ravi, rep2: rita, viewer, importer, otherOwner, otherRep };
}

/** Returns the id of the status with this text. Each company has statuses from its beginning. */
export const statusIdOf = async (client: Client, value: string): Promise<number> =>
  present(dataOf(await client.GET("/api/statuses")).find((status) => status.value === value)).id;

async function invite(owner: Client, name: string, user: Omit<NewUser, "email">): Promise<Client> {
  const email = owner.email.replace(/^owner@/, `${name}@`);
  dataOf(await owner.POST("/api/users", { body: { ...user, email } }), 201);
  return clientOf(email);
}
