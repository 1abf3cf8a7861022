/**
 * Tests over HTTP who may invite, change, disable and enable users. The inviter may choose the `sub` of a new user only with an external
 * issuer, and the local issuer counts as one.
 */
import { describe, expect, test } from "vitest";
import type { NewUser, User, UserPatch } from "../../docs/client/api.ts";
import { at, type Client, clientOf, flushAuthorizers } from "../harness/client.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const nina = { firstName: "Nina", lastName: "New", role: "sales" } as const;
const newUser = (more: Partial<NewUser> = {}): NewUser => ({ email: `${uniqueName()}@one.test`, ...nina, ...more });

const invite = async (more: Partial<NewUser> = {}, client: Client = as.owner): Promise<User> =>
  dataOf(await client.POST("/api/users", { body: newUser(more) }), 201);

const change = (client: Client, id: number, body: UserPatch) => client.PATCH("/api/users/{id}", { ...at(id), body });

const pathOf = ({ id }: { id: number }): string => `/api/users/${id}`;

describe("users", () => {
  test("can sign in right after the invitation, with their rights", async () => {
    const input = newUser({ permissions: ["canViewAllProspects"] });
    const answer = await as.admin.POST("/api/users", {
      body: { ...input, companyId: 1, sub: uniqueName(), isActive: false, id: 5 },
    });
    const made = dataOf(answer, 201);
    expect(answer.response.headers.get("location")).toBe(pathOf(made));
    expect(JSON.stringify(made)).not.toContain("sub");
    expect(made).toMatchObject({ ...input, isActive: true, invitation: "pending" });
    expect(Date.parse(present(made.invitationExpiresAt)) - Date.parse(made.createdAt)).toBe(30 * 24 * 3_600_000);
    expect(dataOf(await as.rep.GET("/api/users/{id}", at(made.id)))).toEqual(made);
    const me = dataOf(await clientOf(made.email).GET("/api/me"));
    expect(me).toMatchObject({
      user: { id: made.id },
      company: { name: "one" },
      role: "sales",
      permissions: ["canViewAllProspects"],
    });
    const accepted = { invitation: "accepted", invitationExpiresAt: null };
    expect(dataOf(await as.rep.GET("/api/users/{id}", at(made.id)))).toMatchObject(accepted);
    expect(dataOf(await as.rep.GET("/api/users")).find(({ id }) => id === made.id)).toMatchObject(accepted);
  });

  test("who have not signed in can be withdrawn and invited again", async () => {
    const made = await invite();
    dataOf(await as.admin.DELETE("/api/users/{id}", at(made.id)));
    const withdrawn = { invitation: "withdrawn", invitationExpiresAt: null, isActive: false };
    expect(dataOf(await as.rep.GET("/api/users/{id}", at(made.id)))).toMatchObject(withdrawn);
    problemOf(await as.admin.DELETE("/api/users/{id}", at(made.id)), 404, "not_found");
    expect(dataOf(await change(as.admin, made.id, { lastName: "Still" }))).toMatchObject(withdrawn);
    expect(dataOf(await change(as.admin, made.id, { isActive: true }))).toMatchObject({ invitation: "pending" });
    dataOf(await as.admin.DELETE("/api/users/{id}", at(made.id)));
    const anew = await invite({ email: made.email });
    expect(dataOf(await clientOf(made.email).GET("/api/me")).user.id).toBe(anew.id);
    problemOf(await change(as.admin, made.id, { isActive: true }), 409, "conflict");
  });

  test("change by field; assigned records show the new name", async () => {
    const made = await invite();
    const assigned = await as.admin.POST("/api/prospects", { body: { assignedToUserId: made.id } });
    const prospect = dataOf(assigned, 201);
    const patch: UserPatch = { firstName: "Nora", role: "admin", permissions: ["canManageProspects"] };
    const changed = dataOf(await change(as.admin, made.id, { ...patch, ...{ email: "other@one.test" } }));
    expect(changed).toEqual({ ...made, ...patch, updatedAt: changed.updatedAt });
    expect(dataOf(await change(as.admin, made.id, {}))).toEqual(changed);
    const seen = dataOf(await as.admin.GET("/api/prospects/{id}", at(prospect.id)));
    expect(seen.assignedTo).toMatchObject({ id: made.id, firstName: "Nora", email: made.email });
    dataOf(await clientOf(made.email).GET("/api/webhooks"));
  });

  test("cannot sign in while disabled, and can again after being enabled", async () => {
    const made = await invite();
    const client = clientOf(made.email);
    expect(dataOf(await as.admin.DELETE("/api/users/{id}", at(made.id)))).toEqual({ id: made.id });
    problemOf(await client.GET("/api/me"), 401, "unauthenticated");
    problemOf(await as.admin.DELETE("/api/users/{id}", at(made.id)), 404, "not_found");
    expect(dataOf(await as.rep.GET("/api/users/{id}", at(made.id))).isActive).toBe(false);
    problemOf(await as.admin.POST("/api/prospects", { body: { assignedToUserId: made.id } }), 400, "validation_failed");
    expect(dataOf(await change(as.admin, made.id, { isActive: true })).isActive).toBe(true);
    dataOf(await client.GET("/api/me"));
  });

  test("who are cached lose access or get a new role once the gateway authorises their token again", async () => {
    const made = await invite();
    const client = clientOf(made.email);
    expect(dataOf(await client.GET("/api/me"))).toMatchObject({ role: "sales", permissions: [] });
    dataOf(await change(as.admin, made.id, { role: "admin", permissions: ["canManageProspects"] }));
    await flushAuthorizers();
    const me = dataOf(await client.GET("/api/me"));
    expect(me.role).toBe("admin");
    expect(me.permissions).toContain("canViewAllProspects");
    dataOf(await client.GET("/api/webhooks"));
    dataOf(await as.owner.DELETE("/api/users/{id}", at(made.id)));
    await flushAuthorizers();
    problemOf(await client.GET("/api/me"), 401, "unauthenticated");
    dataOf(await change(as.owner, made.id, { isActive: true }));
    // The gateway does not cache that the authorizer has refused a token. The user who is enabled again therefore has access at once.
    dataOf(await client.GET("/api/me"));
  });

  test("have a unique e-mail address in the whole service, and the answer does not reveal other companies' addresses", async () => {
    const made = await invite();
    for (const email of [made.email, made.email.toUpperCase(), as.owner.email]) {
      problemOf(await as.admin.POST("/api/users", { body: newUser({ email }) }), 409, "conflict");
    }
    const seen: object[] = [];
    for (const email of [as.owner.email, `${uniqueName()}@two.test`]) {
      const answer = await as.otherOwner.POST("/api/users", { body: newUser({ email }) });
      const { id, email: _, createdAt: _c, updatedAt: _u, invitationExpiresAt, ...rest } = dataOf(answer, 201);
      expect(Date.parse(present(invitationExpiresAt))).toBeGreaterThan(Date.now());
      const headers = [...answer.response.headers.keys()].toSorted();
      const again = problemOf(await as.otherOwner("POST", "/api/users", newUser({ email })), 409, "conflict");
      seen.push({ ...rest, headers, again });
      dataOf(await as.otherOwner.DELETE("/api/users/{id}", at(id)));
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(dataOf(await as.owner.GET("/api/me")).company.name).toBe("one");
    const email = `${uniqueName()}@one.test`;
    const clients = [as.admin, as.owner, as.otherOwner, as.admin, as.otherOwner];
    const answers = await Promise.all(clients.map((client) => client.POST("/api/users", { body: newUser({ email }) })));
    expect(answers.map(statusOf).toSorted()).toEqual([201, 201, 409, 409, 409]);
  });

  test.each<[string, object]>([
    ["/email", { email: "nobody" }],
    ["/lastName", { lastName: "x".repeat(256) }],
    ["/role", { role: "boss" }],
    ["/role", { role: undefined }],
    ["/permissions", { permissions: ["canManageProspects", "canManageProspects"] }],
    ["/permissions/0", { permissions: ["canDoAnything"] }],
  ])("an error at %s is reported, case %#", async (pointer, body) => {
    const faults = problemOf(await as.admin("POST", "/api/users", { ...newUser(), ...body }), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toEqual([pointer]);
  });

  test("of another company are not found, and sales users change no user", async () => {
    const made = await invite();
    for (const method of ["PATCH", "DELETE"]) {
      problemOf(await as.otherOwner(method, pathOf(made), {}), 404, "not_found");
      problemOf(await as.importer(method, pathOf(made), {}), 403, "permission_denied");
    }
    problemOf(await as.viewer.POST("/api/users", { body: newUser() }), 403, "permission_denied");
  });
});

describe("owners", () => {
  test("are created, changed and disabled only by owners", async () => {
    const rep = await invite();
    const owner = await invite({ role: "owner" });
    const denied = [
      await as.admin.POST("/api/users", { body: newUser({ role: "owner" }) }),
      await change(as.admin, rep.id, { role: "owner" }),
      await change(as.admin, owner.id, { lastName: "X" }),
      await change(as.admin, owner.id, { role: "sales" }),
      await as.admin.DELETE("/api/users/{id}", at(owner.id)),
    ];
    for (const answer of denied) problemOf(answer, 403, "permission_denied");
    expect(dataOf(await change(as.owner, owner.id, { role: "admin" })).role).toBe("admin");
    dataOf(await as.admin.DELETE("/api/users/{id}", at(owner.id)));
    problemOf(await change(as.admin, owner.id, { role: "owner", isActive: true }), 403, "permission_denied");
  });

  test("and admins keep their own rights, and change their other fields", async () => {
    for (const role of ["owner", "admin"] as const) {
      const made = await invite({ role });
      const client = clientOf(made.email);
      problemOf(await client.DELETE("/api/users/{id}", at(made.id)), 409, "conflict");
      problemOf(await change(client, made.id, { isActive: false }), 409, "conflict");
      problemOf(await change(client, made.id, { role: "sales" }), 409, "conflict");
      expect(dataOf(await change(client, made.id, { lastName: "Self" })).lastName).toBe("Self");
      dataOf(await as.owner.DELETE("/api/users/{id}", at(made.id)));
    }
  });
});

describe("the subject of a new user", () => {
  test("belongs to one user of the service, and no answer shows it", async () => {
    const sub = `auth0|${uniqueName()}`;
    const made = await invite({ sub });
    expect(JSON.stringify(made)).not.toContain(sub);
    expect(dataOf(await clientOf(made.email).GET("/api/me")).user.id).toBe(made.id);
    for (const client of [as.admin, as.otherOwner]) {
      const again = await client("POST", "/api/users", newUser({ sub }));
      problemOf(again, 409, "conflict");
      expect(again.text).not.toContain(sub);
    }
  });

  test.each(["", "x".repeat(256), "é", "a\nb", 7, null])("is refused: %j", async (sub) => {
    const answer = await as.admin("POST", "/api/users", { ...newUser(), sub });
    expect(problemOf(answer, 400, "validation_failed").map(({ pointer }) => pointer)).toEqual(["/sub"]);
  });
});
