/** Tests over HTTP that programs use the API with API keys, and who may create, rotate, revoke and take over API keys. */
import { describe, expect, test } from "vitest";
import type { NewApiKey } from "../../docs/client/api.ts";
import { newAccount, newKeyOf } from "../harness/api-key.ts";
import { at, type Client, clientOf, clientWith, flushAuthorizers } from "../harness/client.ts";
import { dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

const using = ({ key }: { readonly key: string }): Client => clientWith(async () => key);
const keyPath = (id: number, keyId: string) => ({ params: { path: { id, keyId } } });
const keysOf = async (id: number) => dataOf(await as.admin.GET("/api/service-accounts/{id}/keys", at(id)));

describe("a key", () => {
  test("acts as the service account, which records show as their author", async () => {
    const account = await newAccount(as.admin);
    const key = await newKeyOf(as.admin, account.id);
    expect(key).toMatchObject({ last4: key.key.slice(-4), lastUsedAt: null, orphanedAt: null, replacedBy: null });
    expect(key.key).toMatch(new RegExp(`^pck_${key.id}_[0-9A-Za-z]{38}$`));
    const client = using(key);
    const me = dataOf(await client.GET("/api/me"));
    expect(me).toMatchObject({ role: "admin", scopes: key.scopes });
    expect(me.user).toMatchObject({ id: account.id, lastName: account.name, type: "service" });
    const { id } = dataOf(await client.POST("/api/prospects", { body: { name: "Door" } }), 201);
    const note = dataOf(await client.POST("/api/prospects/{id}/notes", { ...at(id), body: { body: "Hello" } }), 201);
    expect(note.createdBy).toEqual(me.user);
    const users = dataOf(await as.rep.GET("/api/users"));
    expect(users.find(({ id }) => id === account.id)).toMatchObject({ type: "service", invitation: "accepted" });
    expect(users.filter(({ type }) => type !== undefined)).toHaveLength(1);
    const [listed] = await keysOf(account.id);
    expect(listed).toMatchObject({ id: key.id, createdBy: { firstName: "Ada" } });
    expect(Date.parse(listed?.lastUsedAt ?? "")).toBeGreaterThanOrEqual(Date.parse(key.createdAt));
    expect(JSON.stringify(await keysOf(account.id))).not.toContain(key.key.slice(14, 40));
  });

  test("for deletions does not change prospects, and the other way round", async () => {
    const account = await newAccount(as.admin);
    const [writing, deleting] = [
      using(await newKeyOf(as.admin, account.id, { scopes: ["prospects:write"] })),
      using(await newKeyOf(as.admin, account.id, { scopes: ["prospects:delete"] })),
    ];
    const { id } = dataOf(await writing.POST("/api/prospects", { body: { name: "Door" } }), 201);
    problemOf(await writing.DELETE("/api/prospects/{id}", at(id)), 403, "insufficient_scope");
    const remove = { ids: [id], action: { delete: true as const }, dryRun: true };
    const assign = { ids: [id], action: { set: { assignedToUserId: null } }, dryRun: true };
    dataOf(await deleting.POST("/api/prospects/bulk", { body: remove }));
    problemOf(await writing.POST("/api/prospects/bulk", { body: remove }), 403, "insufficient_scope");
    dataOf(await writing.POST("/api/prospects/bulk", { body: assign }));
    problemOf(await deleting.POST("/api/prospects/bulk", { body: assign }), 403, "insufficient_scope");
    const operation = { opId: crypto.randomUUID(), type: "prospect.delete" as const, id, fields: {} };
    const batch = { deviceId: "test", operations: [operation] };
    const rejected = dataOf(await writing.POST("/api/sync/operations", { body: batch }));
    expect(rejected.results).toMatchObject([{ outcome: "rejected", problem: { code: "insufficient_scope" } }]);
    const applied = dataOf(await deleting.POST("/api/sync/operations", { body: batch }));
    expect(applied.results).toMatchObject([{ outcome: "applied" }]);
  });

  test("that is rotated works for the overlap, and one that is revoked no longer", async () => {
    const account = await newAccount(as.admin);
    const first = await newKeyOf(as.admin, account.id);
    const path = "/api/service-accounts/{id}/keys/{keyId}";
    const rotate = async (id: string, overlapSeconds: number) =>
      as.admin.POST(`${path}/rotate`, { ...keyPath(account.id, id), body: { overlapSeconds } });
    const second = dataOf(await rotate(first.id, 60), 201);
    expect(second).toMatchObject({ name: first.name, scopes: first.scopes });
    dataOf(await using(first).GET("/api/me"));
    dataOf(await using(second).GET("/api/me"));
    problemOf(await rotate(first.id, 0), 409, "conflict");
    const third = dataOf(await rotate(second.id, 0), 201);
    dataOf(await as.admin.DELETE(path, keyPath(account.id, first.id)));
    await flushAuthorizers();
    for (const ended of [first, second]) problemOf(await using(ended).GET("/api/me"), 401, "unauthenticated");
    dataOf(await using(third).GET("/api/me"));
    expect((await keysOf(account.id)).map(({ id, replacedBy }) => [id, replacedBy])).toEqual([
      [second.id, third.id],
      [third.id, null],
    ]);
    problemOf(await as.admin.DELETE(path, keyPath(account.id, first.id)), 404, "not_found");
  });

  test("ends with its account, which others may not change as a user", async () => {
    const account = await newAccount(as.admin);
    const client = using(await newKeyOf(as.admin, account.id));
    dataOf(await client.GET("/api/me"));
    problemOf(await as.owner.PATCH("/api/users/{id}", { ...at(account.id), body: { role: "sales" } }), 409, "conflict");
    problemOf(await as.owner.DELETE("/api/users/{id}", at(account.id)), 409, "conflict");
    dataOf(await as.admin.DELETE("/api/service-accounts/{id}", at(account.id)));
    await flushAuthorizers();
    problemOf(await client.GET("/api/me"), 401, "unauthenticated");
    problemOf(await as.admin.GET("/api/service-accounts/{id}", at(account.id)), 404, "not_found");
    problemOf(await as.admin.DELETE("/api/service-accounts/{id}", at(account.id)), 404, "not_found");
    expect(dataOf(await as.rep.GET("/api/users/{id}", at(account.id)))).toMatchObject({ isActive: false });
  });
});

test("a webhook gets the events of a revoked key and of a key whose creator leaves", async () => {
  const { receiver } = await subscribe(as.admin, [{ event: "api_key.revoked" }, { event: "api_key.orphaned" }]);
  const leaver = { email: `${uniqueName()}@x.test`, firstName: "Lea", lastName: "Leaver", role: "admin" } as const;
  const invited = dataOf(await as.owner.POST("/api/users", { body: leaver }), 201);
  const account = await newAccount(clientOf(invited.email));
  const { id } = await newKeyOf(clientOf(invited.email), account.id);
  dataOf(await using(await newKeyOf(as.admin, account.id)).GET("/api/me"));
  dataOf(await as.owner.DELETE("/api/users/{id}", at(invited.id)));
  dataOf(await as.admin.DELETE("/api/service-accounts/{id}/keys/{keyId}", keyPath(account.id, id)));
  await receiver.until(2);
  const bodies = receiver.receipts.map(({ body }) => JSON.parse(String(body)));
  const data = { serviceAccount: { id: account.id, type: "service" }, key: { id } };
  expect(bodies.toSorted((a, b) => a.event.localeCompare(b.event))).toMatchObject([
    { event: "api_key.orphaned", data },
    { event: "api_key.revoked", data },
  ]);
});

describe("rights", () => {
  test("of an account are at most those of its creator, and of a key at most those of the account", async () => {
    const body = { name: "x", role: "owner" as const };
    problemOf(await as.admin.POST("/api/service-accounts", { body }), 403, "permission_denied");
    for (const client of [as.rep, as.viewer, as.importer]) {
      problemOf(await client.GET("/api/service-accounts"), 403, "permission_denied");
    }
    const owned = await newAccount(as.owner, { role: "owner" });
    const path = at(owned.id);
    const create = (by: Client, scopes: NewApiKey["scopes"]) =>
      by.POST("/api/service-accounts/{id}/keys", { ...path, body: { name: "x", scopes } });
    const patch = (change: object) => as.admin("PATCH", `/api/service-accounts/${owned.id}`, change);
    problemOf(await create(as.admin, ["prospects:read"]), 403, "permission_denied");
    problemOf(await patch({ role: "sales", permissions: [] }), 400, "validation_failed");
    problemOf(await patch({ role: "admin" }), 403, "permission_denied");
    const managing = using(await newKeyOf(as.owner, owned.id, { scopes: ["keys:manage", "users:manage"] }));
    problemOf(await create(managing, ["prospects:read"]), 403, "insufficient_scope");
    dataOf(await create(managing, ["keys:manage"]), 201);
    dataOf(await as.owner.PATCH("/api/service-accounts/{id}", { ...path, body: { role: "admin", name: "Other" } }));
    await flushAuthorizers();
    expect(dataOf(await managing.GET("/api/me"))).toMatchObject({ role: "admin", user: { lastName: "Other" } });
  });

  test("to change people and accounts are those of the scopes", async () => {
    const { id } = await newAccount(as.admin);
    const managing = using(await newKeyOf(as.admin, id, { scopes: ["keys:manage", "users:manage"] }));
    const body = { email: `${uniqueName()}@x.test`, firstName: "Ina", lastName: "Invited", role: "sales" as const };
    const person = dataOf(await managing.POST("/api/users", { body }), 201);
    dataOf(await managing.PATCH("/api/users/{id}", { ...at(person.id), body: { firstName: "Ira" } }));
    dataOf(await managing.DELETE("/api/users/{id}", at(person.id)));
    await newAccount(managing);
    const narrow = using(await newKeyOf(as.admin, id, { scopes: ["keys:manage"] }));
    problemOf(await narrow.POST("/api/users", { body }), 403, "insufficient_scope");
  });

  test("fall with those of the creator, until another admin takes the key over", async () => {
    const email = `${uniqueName()}@x.test`;
    const person = { email, firstName: "Lea", lastName: "Leaver", role: "admin" as const };
    const { id: leaverId } = dataOf(await as.owner.POST("/api/users", { body: person }), 201);
    const leaver = clientOf(email);
    const account = await newAccount(leaver);
    const key = await newKeyOf(leaver, account.id);
    dataOf(await as.owner.PATCH("/api/users/{id}", { ...at(leaverId), body: { role: "sales" } }));
    await flushAuthorizers();
    expect(dataOf(await using(key).GET("/api/me"))).toMatchObject({ role: "sales", permissions: [] });
    const take = "/api/service-accounts/{id}/keys/{keyId}/take-over";
    expect(dataOf(await as.admin.POST(take, keyPath(account.id, key.id)))).toMatchObject({ orphanedAt: null });
    await flushAuthorizers();
    expect(dataOf(await using(key).GET("/api/me"))).toMatchObject({ role: "admin" });
  });

  test("of the keys that a key creates for another account are at most its own", async () => {
    const [own, other] = [await newAccount(as.admin), await newAccount(as.admin)];
    const managing = using(await newKeyOf(as.admin, own.id, { scopes: ["keys:manage"] }));
    const made = await newKeyOf(managing, other.id, { scopes: ["keys:manage"] });
    expect(dataOf(await managing.GET("/api/service-accounts/{id}/keys", at(other.id)))).toMatchObject([
      { id: made.id, createdBy: { id: own.id, type: "service" } },
    ]);
    const path = "/api/service-accounts/{id}/keys/{keyId}";
    const rotation = { ...keyPath(other.id, made.id), body: {} };
    const { id } = dataOf(await managing.POST(`${path}/rotate`, rotation), 201);
    problemOf(await managing.POST(`${path}/take-over`, keyPath(other.id, id)), 403, "permission_denied");
    dataOf(await managing.DELETE(path, keyPath(other.id, id)));
    const foreign = await newKeyOf(as.admin, other.id, { scopes: ["prospects:read"] });
    const rotated = await managing.POST(`${path}/rotate`, { ...keyPath(other.id, foreign.id), body: {} });
    problemOf(rotated, 403, "insufficient_scope");
  });

  test("are checked in the body", async () => {
    const { id } = await newAccount(as.admin, { role: "sales", permissions: ["canViewAllProspects"] });
    for (const body of [
      { name: "x", scopes: [] },
      { name: "x", scopes: ["prospects:read", "prospects:read"] },
      { name: "x", scopes: ["prospects"] },
      { name: " ", scopes: ["prospects:read"] },
    ]) {
      problemOf(await as.admin("POST", `/api/service-accounts/${id}/keys`, body), 400, "validation_failed");
    }
    const sales = { name: "x", role: "sales" };
    const [fault] = problemOf(await as.admin("POST", "/api/service-accounts", sales), 400, "validation_failed");
    expect(fault).toMatchObject({ pointer: "/permissions" });
  });
});
