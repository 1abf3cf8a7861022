/** Tests statuses and `GET /api/me` over HTTP. Who reaches a status is in test/http/matrix.api.test.ts. */
import { describe, expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

test("me is the caller with company, role and permissions", async () => {
  const me = dataOf(await as.importer.GET("/api/me"));
  expect(me).toMatchObject({
    user: { email: as.importer.email },
    company: { name: "one" },
    role: "sales",
    permissions: ["canManageProspects"],
  });
  expect(dataOf(await as.rep.GET("/api/me"))).toMatchObject({ role: "sales", permissions: [] });
});

test("me lists every permission for admins and owners, because they hold all of them", async () => {
  for (const client of [as.admin, as.owner]) {
    const { permissions } = dataOf(await client.GET("/api/me"));
    expect(permissions.toSorted()).toEqual(["canManageProspects", "canViewAllProspects"]);
  }
});

describe("statuses", () => {
  test("a company starts with eight statuses", async () => {
    const values = dataOf(await as.otherRep.GET("/api/statuses")).map(({ value }) => value);
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

  test("are created, read, changed and deactivated by admins", async () => {
    const value = uniqueName();
    const answer = await as.admin.POST("/api/statuses", { body: { value, color: "#123456" } });
    const made = dataOf(answer, 201);
    expect(answer.response.headers.get("location")).toBe(`/api/statuses/${made.id}`);
    expect(made).toMatchObject({ value, color: "#123456", isActive: true });
    expect(dataOf(await as.rep.GET("/api/statuses/{id}", at(made.id)))).toEqual(made);

    const prospect = dataOf(await as.rep.POST("/api/prospects", { body: { currentStatusId: made.id } }), 201);
    expect(
      dataOf(await as.admin.PATCH("/api/statuses/{id}", { ...at(made.id), body: { value: `${value}!` } })).value,
    ).toBe(`${value}!`);
    expect(dataOf(await as.admin.DELETE("/api/statuses/{id}", at(made.id)))).toEqual({ id: made.id });
    problemOf(await as.admin.DELETE("/api/statuses/{id}", at(made.id)), 404, "not_found");

    const listed = dataOf(await as.rep.GET("/api/statuses"));
    expect(listed.find(({ id }) => id === made.id)).toMatchObject({ isActive: false });
    const kept = dataOf(await as.rep.GET("/api/prospects/{id}", at(prospect.id)));
    expect(kept.currentStatus?.value).toBe(`${value}!`);
    expect(kept.statusHistory[0]?.status?.value).toBe(value);
    problemOf(await as.rep.POST("/api/prospects", { body: { currentStatusId: made.id } }), 400, "validation_failed");
    dataOf(
      await as.rep.PATCH("/api/prospects/{id}", { ...at(prospect.id), body: { currentStatusId: made.id, name: "x" } }),
    );
  });

  test("values are unique in any letter case, also for twenty concurrent creations and after a rename", async () => {
    const value = uniqueName();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        as.admin.POST("/api/statuses", { body: { value: i % 2 === 0 ? value : value.toLowerCase() } }),
      ),
    );
    expect(answers.map(statusOf).toSorted()).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    const made = present(answers.find(({ data }) => data !== undefined)?.data);
    dataOf(await as.admin.PATCH("/api/statuses/{id}", { ...at(made.id), body: { value: `${value}2` } }));
    const again = dataOf(await as.admin.POST("/api/statuses", { body: { value: ` ${value.toUpperCase()} ` } }), 201);
    expect(again.value).toBe(value.toUpperCase());
    problemOf(await as.admin.PATCH("/api/statuses/{id}", { ...at(made.id), body: { value } }), 409, "conflict");
  });

  test("a value is the same in every Unicode normalisation, and is found and returned as it was sent", async () => {
    const name = uniqueName();
    const value = `Straße Cafe\u0301 ${name}`;
    const { id } = dataOf(await as.admin.POST("/api/statuses", { body: { value } }), 201);
    for (const other of [value.toUpperCase(), value.normalize("NFC"), `strasse café ${name}`]) {
      problemOf(await as.admin.POST("/api/statuses", { body: { value: other } }), 409, "conflict");
      dataOf(await as.rep.POST("/api/prospects", { body: { name: other, currentStatusId: id } }), 201);
    }
    for (const query of [{ status: `STRASSE CAFÉ ${name}` }, { search: `straße CAFE\u0301 ${name}` }]) {
      const { items } = dataOf(await as.rep.GET("/api/prospects", { params: { query } }));
      expect(items.map(({ currentStatus }) => currentStatus?.value)).toEqual([value, value, value]);
    }
    await as.admin.DELETE("/api/statuses/{id}", at(id));
  });

  test.each([{ value: "a,b" }, { value: "a;b" }, { value: "x", color: "red" }])("%j is refused", async (body) => {
    expect(problemOf(await as.admin("POST", "/api/statuses", body), 400, "validation_failed")).not.toHaveLength(0);
  });
});
