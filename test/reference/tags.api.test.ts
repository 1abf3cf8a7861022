/** Tests the tags of a company and the tags of a prospect over HTTP. Who reaches them is in test/http/matrix.api.test.ts. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { Tag } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

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
  test("are created, read and changed by admins", async () => {
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
  });

  test("values are unique in any letter case, also for concurrent creations, and available again after a delete or rename", async () => {
    const value = uniqueName();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        as.admin.POST("/api/tags", { body: { value: i % 2 === 0 ? value : ` ${value.toLowerCase()}` } }),
      ),
    );
    expect(answers.map(statusOf).toSorted()).toEqual([201, ...Array.from({ length: 11 }, () => 409)]);
    const { id } = present(answers.find(({ data }) => data !== undefined)?.data);
    dataOf(await as.admin.DELETE("/api/tags/{id}", at(id)));
    const again = await createTag(value.toUpperCase());
    dataOf(await as.admin.PATCH("/api/tags/{id}", { ...at(again.id), body: { value: uniqueName() } }));
    await createTag(value);
    problemOf(await as.admin.PATCH("/api/tags/{id}", { ...at(again.id), body: { value } }), 409, "conflict");
  });

  test("may have the value of a status, or of another company's tag", async () => {
    const value = uniqueName();
    dataOf(await as.otherOwner.POST("/api/tags", { body: { value } }), 201);
    const status = dataOf(await as.admin.POST("/api/statuses", { body: { value } }), 201);
    await createTag(value);
    await as.admin.DELETE("/api/statuses/{id}", at(status.id));
  });

  test.each([{ value: "a,b" }, { value: "a;b" }, { value: "x", color: "red" }])("%j is refused", async (body) => {
    expect(problemOf(await as.admin("POST", "/api/tags", body), 400, "validation_failed")).not.toHaveLength(0);
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
    const found = dataOf(
      await as.rep.GET("/api/prospects", { params: { query: { tagId: first.value.toLowerCase() } } }),
    );
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
    expect(
      dataOf(
        await setTags(
          as.rep,
          id,
          Array.from({ length: 51 }, () => mine),
        ),
      ).tags,
    ).toHaveLength(1);
    problemOf(await as.rep("PUT", `/api/prospects/${id}/tags`, {}), 400, "validation_failed");
  });

  test("emit prospect.updated", async () => {
    const tag = await createTag();
    const id = await createProspect();
    const registrations = [{ event: "prospect.updated", filter: { "prospect.id": id } }];
    const { receiver } = await subscribe(as.admin, registrations);
    dataOf(await setTags(as.rep, id, [tag.id]));
    await receiver.until(1);
    expect(receiver.receipts[0]?.event.data).toMatchObject({
      changedFields: ["tags"],
      prospect: { id, tags: [{ tag }] },
    });
  });
});
