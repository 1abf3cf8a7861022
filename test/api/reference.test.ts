/** Statuses, users and the caller over HTTP. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, DetailBody, Identified, ProspectBody, problemOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const Status = z.object({
  id: z.number(),
  value: z.string(),
  color: z.string(),
  sortOrder: z.number(),
  isActive: z.boolean(),
});
const Users = z.array(z.object({ id: z.number(), email: z.string(), role: z.string(), isActive: z.boolean() }));

test("me is the caller with company, role and permissions", async () => {
  const me = bodyOf(await as.importer("GET", "/api/me"), 200, z.unknown());
  expect(me).toMatchObject({
    user: { email: as.importer.email },
    company: { name: "one" },
    role: "sales",
    permissions: ["canManageProspects"],
  });
});

describe("statuses", () => {
  test("a company starts with eight", async () => {
    const values = bodyOf(await as.otherRep("GET", "/api/statuses"), 200, z.array(Status)).map(({ value }) => value);
    const starting = [
      "New",
      "Not Home",
      "Go Back",
      "Interested",
      "Appointment Set",
      "Not Interested",
      "Sold",
      "Do Not Knock",
    ];
    expect(values).toEqual(starting);
  });

  test("are made, read, changed and deactivated by admins", async () => {
    const value = uniqueName();
    const answer = await as.admin("POST", "/api/statuses", { value, color: "#123456" });
    const made = bodyOf(answer, 201, Status);
    expect(answer.headers.get("location")).toBe(`/api/statuses/${made.id}`);
    expect(made).toMatchObject({ value, color: "#123456", isActive: true });
    const path = `/api/statuses/${made.id}`;
    expect(bodyOf(await as.rep("GET", path), 200, Status)).toEqual(made);

    const prospect = bodyOf(await as.rep("POST", "/api/prospects", { currentStatusId: made.id }), 201, ProspectBody);
    expect(bodyOf(await as.admin("PATCH", path, { value: `${value}!` }), 200, Status).value).toBe(`${value}!`);
    expect(bodyOf(await as.admin("DELETE", path), 200, Identified)).toEqual({ id: made.id });
    problemOf(await as.admin("DELETE", path), 404, "not_found");

    const listed = bodyOf(await as.rep("GET", "/api/statuses"), 200, z.array(Status));
    expect(listed.find(({ id }) => id === made.id)).toMatchObject({ isActive: false });
    const kept = bodyOf(await as.rep("GET", `/api/prospects/${prospect.id}`), 200, DetailBody);
    expect(kept.currentStatus?.value).toBe(`${value}!`);
    expect(kept.statusHistory[0]?.status?.value).toBe(value);
    problemOf(await as.rep("POST", "/api/prospects", { currentStatusId: made.id }), 400, "validation_failed");
    bodyOf(
      await as.rep("PATCH", `/api/prospects/${prospect.id}`, { currentStatusId: made.id, name: "x" }),
      200,
      ProspectBody,
    );
  });

  test("values are unique without case, also when twenty are made at once and after a rename", async () => {
    const value = uniqueName();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        as.admin("POST", "/api/statuses", { value: i % 2 === 0 ? value : value.toLowerCase() }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    const made = z.parse(Identified, answers.find(({ status }) => status === 201)?.body);
    bodyOf(await as.admin("PATCH", `/api/statuses/${made.id}`, { value: `${value}2` }), 200, Status);
    const again = bodyOf(await as.admin("POST", "/api/statuses", { value: ` ${value.toUpperCase()} ` }), 201, Status);
    expect(again.value).toBe(value.toUpperCase());
    problemOf(await as.admin("PATCH", `/api/statuses/${made.id}`, { value }), 409, "conflict");
  });

  test.each([
    {},
    { value: "" },
    { value: "a,b" },
    { value: "a;b" },
    { value: "   " },
    { value: "x", color: "red" },
    { value: 5 },
  ])("%j is refused", async (body) => {
    expect(problemOf(await as.admin("POST", "/api/statuses", body), 400, "validation_failed")).not.toHaveLength(0);
  });

  test("sales users read and do not write", async () => {
    const [first] = bodyOf(await as.rep("GET", "/api/statuses"), 200, z.array(Status));
    for (const [method, path] of [
      ["POST", "/api/statuses"],
      ["PATCH", `/api/statuses/${first?.id}`],
      ["DELETE", `/api/statuses/${first?.id}`],
    ] as const) {
      problemOf(await as.viewer(method, path, {}), 403, "permission_denied");
    }
  });

  test("another company's status is none", async () => {
    const [foreign] = bodyOf(await as.otherOwner("GET", "/api/statuses"), 200, z.array(Status));
    problemOf(await as.admin("GET", `/api/statuses/${foreign?.id}`), 404, "not_found");
    problemOf(await as.admin("PATCH", `/api/statuses/${foreign?.id}`, { value: "Mine" }), 404, "not_found");
    problemOf(await as.admin("DELETE", `/api/statuses/${foreign?.id}`), 404, "not_found");
  });
});

describe("users", () => {
  test("all of the company, none of another", async () => {
    const users = bodyOf(await as.rep("GET", "/api/users"), 200, Users);
    expect(users.map(({ email }) => email)).toContain(as.rep2.email);
    expect(users.some(({ email }) => email === as.otherOwner.email)).toBe(false);
    const [foreign] = bodyOf(await as.otherOwner("GET", "/api/users"), 200, Users);
    problemOf(await as.owner("GET", `/api/users/${foreign?.id}`), 404, "not_found");
    expect(bodyOf(await as.rep("GET", `/api/users/${users[0]?.id}`), 200, z.unknown())).toMatchObject({
      email: users[0]?.email,
    });
  });
});
