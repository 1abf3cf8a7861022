/** Tests statuses, tags and `GET /api/me` over HTTP. test/http/matrix.api.test.ts tests who may read and change them. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { Tag } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

test("me lists every permission for admins and owners, because they hold all of them", async () => {
  for (const client of [as.admin, as.owner]) {
    const { permissions } = dataOf(await client.GET("/api/me"));
    expect(permissions.toSorted()).toEqual(["canManageProspects", "canViewAllProspects"]);
  }
});

describe("statuses", () => {
  test("a company starts with eight statuses", async () => {
    const values = dataOf(await as.otherRep.GET("/api/statuses")).map(({ value }) => value);
    const starting = "New, Not Home, Go Back, Interested, Appointment Set, Not Interested, Sold, Do Not Knock";
    expect(values).toEqual(starting.split(", "));
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
    const body = { currentStatusId: made.id, name: "x" };
    dataOf(await as.rep.PATCH("/api/prospects/{id}", { ...at(prospect.id), body }));
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
});

describe.each(["statuses", "tags"])("the values of %s", (kind) => {
  const create = (body: object) => as.admin("POST", `/api/${kind}`, body);

  test("are unique in any letter case, also for twenty concurrent creations, and available again after a rename", async () => {
    const value = uniqueName();
    const sent = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? value : ` ${value.toLowerCase()}`));
    const answers = await Promise.all(sent.map((text) => create({ value: text })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    const { id } = bodyOf(present(answers.find(({ status }) => status === 201)), 201, Identified);
    const change = (text: string) => as.admin("PATCH", `/api/${kind}/${id}`, { value: text });
    bodyOf(await change(`${value}2`), 200, Identified);
    expect((await create({ value: ` ${value.toUpperCase()} ` })).body).toMatchObject({ value: value.toUpperCase() });
    problemOf(await change(value), 409, "conflict");
  });

  test.each([{ value: "a,b" }, { value: "a;b" }, { value: "x", color: "red" }])("are refused: %j", async (body) => {
    expect(problemOf(await create(body), 400, "validation_failed")).not.toHaveLength(0);
  });
});

async function createTag(value = uniqueName()): Promise<Tag> {
  const made = dataOf(await as.admin.POST("/api/tags", { body: { value, color: "#ABCDEF" } }), 201);
  onTestFinished(async () => void (await as.admin.DELETE("/api/tags/{id}", at(made.id))));
  return made;
}

async function createProspect(): Promise<number> {
  const { id } = dataOf(await as.rep.POST("/api/prospects", { body: { name: uniqueName() } }), 201);
  onTestFinished(async () => void (await as.admin.DELETE("/api/prospects/{id}", at(id))));
  return id;
}

const setTags = (client: Client, id: number, tagIds: number[]) =>
  client.PUT("/api/prospects/{id}/tags", { ...at(id), body: { tagIds } });

describe("tags", () => {
  test("are created, read, changed and deleted by admins, and the value of a deleted tag is available again", async () => {
    const value = uniqueName();
    const answer = await as.admin.POST("/api/tags", { body: { value } });
    const made = dataOf(answer, 201);
    expect(made).toEqual({ id: made.id, value, color: "#9CA3AF" });
    expect(answer.response.headers.get("location")).toBe(`/api/tags/${made.id}`);
    expect(dataOf(await as.rep.GET("/api/tags/{id}", at(made.id)))).toEqual(made);
    const changed = dataOf(
      await as.owner.PATCH("/api/tags/{id}", { ...at(made.id), body: { value: `${value}!`, color: "#123456" } }),
    );
    expect(changed).toEqual({ id: made.id, value: `${value}!`, color: "#123456" });
    dataOf(await as.admin.DELETE("/api/tags/{id}", at(made.id)));
    await createTag(`${value}!`);
  });

  test("may have the value of a status, or of another company's tag", async () => {
    const value = uniqueName();
    dataOf(await as.otherOwner.POST("/api/tags", { body: { value } }), 201);
    const status = dataOf(await as.admin.POST("/api/statuses", { body: { value } }), 201);
    await createTag(value);
    await as.admin.DELETE("/api/statuses/{id}", at(status.id));
  });
});

describe("tags of a prospect", () => {
  test("are replaced in the order sent, found by the filter, and follow a rename and a delete", async () => {
    const [first, second] = [await createTag(), await createTag()];
    const id = await createProspect();
    const tagged = dataOf(await setTags(as.rep, id, [second.id, first.id, second.id]));
    expect(tagged.tags).toEqual([{ tag: second }, { tag: first }]);
    const again = dataOf(await setTags(as.rep, id, [second.id, first.id]));
    expect(again).toEqual(tagged);
    const query = { tagId: first.value.toLowerCase() };
    const found = dataOf(await as.rep.GET("/api/prospects", { params: { query } }));
    expect(found.items.map((item) => item.id)).toEqual([id]);

    dataOf(await as.admin.PATCH("/api/tags/{id}", { ...at(first.id), body: { color: "#000000" } }));
    dataOf(await as.admin.DELETE("/api/tags/{id}", at(second.id)));
    const detail = dataOf(await as.rep.GET("/api/prospects/{id}", at(id)));
    expect(detail.tags).toEqual([{ tag: { ...first, color: "#000000" } }]);
    const kept = dataOf(await setTags(as.rep, id, [first.id]));
    expect(kept.updatedAt).toBe(tagged.updatedAt);
    expect(dataOf(await setTags(as.rep, id, [])).tags).toEqual([]);
    expect(dataOf(await as.rep.GET("/api/prospects", { params: { query: { tagId: second.value } } })).total).toBe(0);
  });

  test("unknown tags and tags of another company are reported in the same words", async () => {
    const { id: mine } = await createTag();
    const foreign = dataOf(await as.otherOwner.POST("/api/tags", { body: { value: uniqueName() } }), 201);
    const id = await createProspect();
    const pointers = async (tagIds: number[]) => problemOf(await setTags(as.rep, id, tagIds), 400, "validation_failed");
    const faults = await pointers([mine, foreign.id, mine, 2 ** 50]);
    expect(faults.map(({ pointer }) => pointer)).toEqual(["/tagIds/1", "/tagIds/3"]);
    expect({ ...faults[0], pointer: "" }).toEqual({ ...faults[1], pointer: "" });
    expect((await pointers([0]))[0]?.pointer).toBe("/tagIds/0");
    expect((await pointers(Array.from({ length: 51 }, (_, i) => 2 ** 50 + i)))[0]?.pointer).toBe("/tagIds");
    expect(await pointers(Array.from({ length: 50_000 }, () => foreign.id))).toHaveLength(1);
    const repeated = Array.from({ length: 51 }, () => mine);
    expect(dataOf(await setTags(as.rep, id, repeated)).tags).toHaveLength(1);
    problemOf(await as.rep("PUT", `/api/prospects/${id}/tags`, {}), 400, "validation_failed");
  });

  test("emit prospect.updated", async () => {
    const tag = await createTag();
    const id = await createProspect();
    const registrations = [{ event: "prospect.updated", filter: { "prospect.id": id } }];
    const { receiver } = await subscribe(as.admin, registrations);
    dataOf(await setTags(as.rep, id, [tag.id]));
    await receiver.until(1);
    const change = { changedFields: ["tags"], prospect: { id, tags: [{ tag }] } };
    expect(receiver.receipts[0]?.event.data).toMatchObject(change);
  });
});
