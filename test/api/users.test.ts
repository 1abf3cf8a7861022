/** Users over HTTP: invited, changed, disabled and enabled, within what each role may do. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { type Client, clientOf } from "./client.ts";
import { bodyOf, Identified, ProspectBody, problemOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const User = z.object({
  id: z.number(),
  firstName: z.string(),
  lastName: z.string(),
  email: z.string(),
  role: z.string(),
  permissions: z.array(z.string()),
  isActive: z.boolean(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
type User = z.infer<typeof User>;

const newUser = (more: object = {}) => ({
  email: `${uniqueName()}@one.test`,
  firstName: "Nina",
  lastName: "New",
  role: "sales",
  ...more,
});

const invite = async (more: object = {}, client: Client = as.owner): Promise<User> =>
  bodyOf(await client("POST", "/api/users", newUser(more)), 201, User);

const pathOf = ({ id }: { id: number }): string => `/api/users/${id}`;

describe("users", () => {
  test("who are invited can sign in at once with what they were given", async () => {
    const input = newUser({ permissions: ["canViewAllProspects"] });
    const answer = await as.admin("POST", "/api/users", {
      ...input,
      companyId: 1,
      sub: "mine",
      isActive: false,
      id: 5,
    });
    const made = bodyOf(answer, 201, User);
    expect(answer.headers.get("location")).toBe(pathOf(made));
    expect(answer.text).not.toContain("sub");
    expect(made).toMatchObject({ ...input, isActive: true });
    expect(bodyOf(await as.rep("GET", pathOf(made)), 200, User)).toEqual(made);
    const me = bodyOf(await clientOf(made.email)("GET", "/api/me"), 200, z.unknown());
    expect(me).toMatchObject({
      user: { id: made.id },
      company: { name: "one" },
      role: "sales",
      permissions: ["canViewAllProspects"],
    });
  });

  test("change field by field; their name shows where they are assigned", async () => {
    const made = await invite();
    const assigned = await as.admin("POST", "/api/prospects", { assignedToUserId: made.id });
    const prospect = bodyOf(assigned, 201, ProspectBody);
    const patch = { firstName: "Nora", role: "admin", permissions: ["canManageProspects"] };
    const changed = bodyOf(await as.admin("PATCH", pathOf(made), { ...patch, email: "other@one.test" }), 200, User);
    expect(changed).toEqual({ ...made, ...patch, updatedAt: changed.updatedAt });
    expect(bodyOf(await as.admin("PATCH", pathOf(made), {}), 200, User)).toEqual(changed);
    const seen = bodyOf(await as.admin("GET", `/api/prospects/${prospect.id}`), 200, ProspectBody);
    expect(seen.assignedTo).toMatchObject({ id: made.id, firstName: "Nora", email: made.email });
    bodyOf(await clientOf(made.email)("GET", "/api/webhooks"), 200, z.array(z.unknown()));
  });

  test("who are disabled are out, and in again when they are enabled", async () => {
    const made = await invite();
    const client = clientOf(made.email);
    expect(bodyOf(await as.admin("DELETE", pathOf(made)), 200, z.unknown())).toEqual({ id: made.id });
    problemOf(await client("GET", "/api/me"), 401, "unauthenticated");
    problemOf(await as.admin("DELETE", pathOf(made)), 404, "not_found");
    expect(bodyOf(await as.rep("GET", pathOf(made)), 200, User).isActive).toBe(false);
    problemOf(await as.admin("POST", "/api/prospects", { assignedToUserId: made.id }), 400, "validation_failed");
    expect(bodyOf(await as.admin("PATCH", pathOf(made), { isActive: true }), 200, User).isActive).toBe(true);
    bodyOf(await client("GET", "/api/me"), 200, z.unknown());
  });

  test("have an e-mail address of their own in the whole service", async () => {
    const made = await invite();
    const bodies = [made.email, made.email.toUpperCase(), as.owner.email, as.otherOwner.email].map((email) =>
      newUser({ email }),
    );
    const details = new Set<string>();
    for (const body of bodies) {
      const answer = await as.admin("POST", "/api/users", body);
      problemOf(answer, 409, "conflict");
      details.add(z.parse(z.object({ detail: z.string() }), answer.body).detail);
    }
    expect(details.size).toBe(1);
    const email = `${uniqueName()}@one.test`;
    const clients = [as.admin, as.owner, as.otherOwner, as.admin, as.otherOwner];
    const answers = await Promise.all(clients.map((client) => client("POST", "/api/users", newUser({ email }))));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409]);
  });

  test.each<[string, object]>([
    ["/email", { email: "nobody" }],
    ["/email", { email: undefined }],
    ["/firstName", { firstName: "" }],
    ["/lastName", { lastName: "x".repeat(256) }],
    ["/role", { role: "boss" }],
    ["/role", { role: undefined }],
    ["/permissions", { permissions: ["canManageProspects", "canManageProspects"] }],
    ["/permissions/0", { permissions: ["canDoAnything"] }],
  ])("a fault at %s is told, case %#", async (pointer, body) => {
    const faults = problemOf(await as.admin("POST", "/api/users", newUser(body)), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toEqual([pointer]);
  });

  test("of another company are none, and sales users change nobody", async () => {
    const made = await invite();
    for (const method of ["PATCH", "DELETE"]) {
      problemOf(await as.otherOwner(method, pathOf(made), {}), 404, "not_found");
      problemOf(await as.importer(method, pathOf(made), {}), 403, "permission_denied");
    }
    problemOf(await as.viewer("POST", "/api/users", newUser()), 403, "permission_denied");
  });
});

describe("owners", () => {
  test("are made, changed and disabled by owners only", async () => {
    const rep = await invite();
    const owner = await invite({ role: "owner" });
    const denied = [
      await as.admin("POST", "/api/users", newUser({ role: "owner" })),
      await as.admin("PATCH", pathOf(rep), { role: "owner" }),
      await as.admin("PATCH", pathOf(owner), { lastName: "X" }),
      await as.admin("PATCH", pathOf(owner), { role: "sales" }),
      await as.admin("DELETE", pathOf(owner)),
    ];
    for (const answer of denied) problemOf(answer, 403, "permission_denied");
    expect(bodyOf(await as.owner("PATCH", pathOf(owner), { role: "admin" }), 200, User).role).toBe("admin");
    bodyOf(await as.admin("DELETE", pathOf(owner)), 200, Identified);
    problemOf(await as.admin("PATCH", pathOf(owner), { role: "owner", isActive: true }), 403, "permission_denied");
  });

  test("and admins keep their own rights, and change what else is theirs", async () => {
    for (const role of ["owner", "admin"]) {
      const made = await invite({ role });
      const client = clientOf(made.email);
      problemOf(await client("DELETE", pathOf(made)), 409, "conflict");
      problemOf(await client("PATCH", pathOf(made), { isActive: false }), 409, "conflict");
      problemOf(await client("PATCH", pathOf(made), { role: "sales" }), 409, "conflict");
      expect(bodyOf(await client("PATCH", pathOf(made), { lastName: "Self" }), 200, User).lastName).toBe("Self");
      bodyOf(await as.owner("DELETE", pathOf(made)), 200, Identified);
    }
  });
});
