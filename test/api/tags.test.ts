/** Tags over HTTP: by themselves, and on prospects. */
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { startReceiver } from "./receiver.ts";
import { bodyOf, DetailBody, Identified, Page, ProspectBody, problemOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const Tag = z.object({ id: z.number(), value: z.string(), color: z.string() });
const Tagged = z.extend(ProspectBody, { tags: z.array(z.object({ tag: Tag })) });

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function createTag(value = uniqueName()): Promise<z.infer<typeof Tag>> {
  const made = bodyOf(await as.admin("POST", "/api/tags", { value, color: "#ABCDEF" }), 201, Tag);
  cleanUps.push(() => as.admin("DELETE", `/api/tags/${made.id}`));
  return made;
}

async function createProspect(client = as.rep): Promise<number> {
  const { id } = bodyOf(await client("POST", "/api/prospects", { name: uniqueName() }), 201, Identified);
  cleanUps.push(() => as.admin("DELETE", `/api/prospects/${id}`));
  return id;
}

const listedIds = async (client = as.rep): Promise<number[]> =>
  bodyOf(await client("GET", "/api/tags"), 200, z.array(Tag)).map(({ id }) => id);

describe("tags", () => {
  test("are made, read, changed and deleted by admins", async () => {
    const value = uniqueName();
    const answer = await as.admin("POST", "/api/tags", { value });
    const made = bodyOf(answer, 201, Tag);
    const path = `/api/tags/${made.id}`;
    expect(made).toEqual({ id: made.id, value, color: "#9CA3AF" });
    expect(answer.headers.get("location")).toBe(path);
    expect(bodyOf(await as.rep("GET", path), 200, Tag)).toEqual(made);
    const changed = bodyOf(await as.owner("PATCH", path, { value: `${value}!`, color: "#123456" }), 200, Tag);
    expect(changed).toEqual({ id: made.id, value: `${value}!`, color: "#123456" });
    expect(bodyOf(await as.admin("PATCH", path, {}), 200, Tag)).toEqual(changed);
    expect(await listedIds()).toContain(made.id);
    expect(bodyOf(await as.admin("DELETE", path), 200, z.unknown())).toEqual({ id: made.id });
    for (const method of ["GET", "PATCH", "DELETE"]) problemOf(await as.admin(method, path), 404, "not_found");
    expect(await listedIds()).not.toContain(made.id);
  });

  test("values are unique without case, also when many are made at once, and free again after a delete or rename", async () => {
    const value = uniqueName();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        as.admin("POST", "/api/tags", { value: i % 2 === 0 ? value : ` ${value.toLowerCase()}` }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 11 }, () => 409)]);
    const { id } = z.parse(Identified, answers.find(({ status }) => status === 201)?.body);
    bodyOf(await as.admin("DELETE", `/api/tags/${id}`), 200, Identified);
    const again = await createTag(value.toUpperCase());
    bodyOf(await as.admin("PATCH", `/api/tags/${again.id}`, { value: uniqueName() }), 200, Tag);
    await createTag(value);
    problemOf(await as.admin("PATCH", `/api/tags/${again.id}`, { value }), 409, "conflict");
  });

  test("may be called like a status, and like another company's tag", async () => {
    const value = uniqueName();
    bodyOf(await as.otherOwner("POST", "/api/tags", { value }), 201, Tag);
    const status = bodyOf(await as.admin("POST", "/api/statuses", { value }), 201, Identified);
    await createTag(value);
    await as.admin("DELETE", `/api/statuses/${status.id}`);
  });

  test.each([
    {},
    { value: "" },
    { value: " " },
    { value: "a,b" },
    { value: "a;b" },
    { value: "x", color: "red" },
    { value: 5 },
  ])("%j is refused", async (body) => {
    expect(problemOf(await as.admin("POST", "/api/tags", body), 400, "validation_failed")).not.toHaveLength(0);
  });

  test("sales users read and do not write; another company's tag is none", async () => {
    const { id } = await createTag();
    problemOf(await as.viewer("POST", "/api/tags", { value: "x" }), 403, "permission_denied");
    for (const method of ["PATCH", "DELETE"]) {
      problemOf(await as.viewer(method, `/api/tags/${id}`, {}), 403, "permission_denied");
      problemOf(await as.otherOwner(method, `/api/tags/${id}`, {}), 404, "not_found");
    }
    problemOf(await as.otherRep("GET", `/api/tags/${id}`), 404, "not_found");
  });
});

describe("tags of a prospect", () => {
  test("are replaced in the order sent, found by the filter, and follow a rename and a delete", async () => {
    const [first, second] = [await createTag(), await createTag()];
    const id = await createProspect();
    const path = `/api/prospects/${id}/tags`;
    const tagged = bodyOf(await as.rep("PUT", path, { tagIds: [second.id, first.id, second.id] }), 200, Tagged);
    expect(tagged.tags).toEqual([{ tag: second }, { tag: first }]);
    const again = bodyOf(await as.rep("PUT", path, { tagIds: [second.id, first.id] }), 200, Tagged);
    expect(again).toEqual(tagged);
    const found = bodyOf(await as.rep("GET", `/api/prospects?tagId=${first.value.toLowerCase()}`), 200, Page);
    expect(found.items.map((item) => item.id)).toEqual([id]);

    bodyOf(await as.admin("PATCH", `/api/tags/${first.id}`, { color: "#000000" }), 200, Tag);
    bodyOf(await as.admin("DELETE", `/api/tags/${second.id}`), 200, Identified);
    const detail = bodyOf(
      await as.rep("GET", `/api/prospects/${id}`),
      200,
      z.extend(DetailBody, { tags: z.unknown() }),
    );
    expect(detail.tags).toEqual([{ tag: { ...first, color: "#000000" } }]);
    const kept = bodyOf(await as.rep("PUT", path, { tagIds: [first.id] }), 200, Tagged);
    expect(kept.updatedAt).toBe(tagged.updatedAt);
    expect(bodyOf(await as.rep("PUT", path, { tagIds: [] }), 200, Tagged).tags).toEqual([]);
    expect(bodyOf(await as.rep("GET", `/api/prospects?tagId=${second.value}`), 200, Page).total).toBe(0);
  });

  test("each unknown or foreign one is pointed at, in the same words", async () => {
    const { id: mine } = await createTag();
    const foreign = bodyOf(await as.otherOwner("POST", "/api/tags", { value: uniqueName() }), 201, Tag);
    const path = `/api/prospects/${await createProspect()}/tags`;
    const pointers = async (tagIds: number[]) =>
      problemOf(await as.rep("PUT", path, { tagIds }), 400, "validation_failed");
    const faults = await pointers([mine, foreign.id, mine, 2 ** 50]);
    expect(faults.map(({ pointer }) => pointer)).toEqual(["/tagIds/1", "/tagIds/3"]);
    expect({ ...faults[0], pointer: "" }).toEqual({ ...faults[1], pointer: "" });
    expect((await pointers([0]))[0]?.pointer).toBe("/tagIds/0");
    expect((await pointers(Array.from({ length: 51 }, () => mine)))[0]?.pointer).toBe("/tagIds");
    problemOf(await as.rep("PUT", path, {}), 400, "validation_failed");
  });

  test("are given by whoever sees the prospect, and by nobody else", async () => {
    const { id: tagId } = await createTag();
    const path = `/api/prospects/${await createProspect()}/tags`;
    bodyOf(await as.viewer("PUT", path, { tagIds: [tagId] }), 200, Tagged);
    problemOf(await as.rep2("PUT", path, { tagIds: [] }), 404, "not_found");
    problemOf(await as.otherOwner("PUT", path, { tagIds: [] }), 404, "not_found");
  });

  test("lose no other change that comes at the same time", async () => {
    const tags = [await createTag(), await createTag(), await createTag()];
    const id = await createProspect();
    await Promise.all([
      ...tags.map((tag) => as.rep("PUT", `/api/prospects/${id}/tags`, { tagIds: [tag.id] })),
      ...["phoneNumber", "source", "sourceId"].map((field) =>
        as.rep("PATCH", `/api/prospects/${id}`, { [field]: "x" }),
      ),
    ]).then((answers) => expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200)));
    const seen = bodyOf(
      await as.rep("GET", `/api/prospects/${id}`),
      200,
      z.extend(Tagged, { phoneNumber: z.string(), source: z.string(), sourceId: z.string() }),
    );
    expect(seen.tags).toHaveLength(1);
    expect([seen.phoneNumber, seen.source, seen.sourceId]).toEqual(["x", "x", "x"]);
  });

  test("are told to webhooks as a change of the prospect", async () => {
    const receiver = await startReceiver();
    cleanUps.push(receiver.close);
    const tag = await createTag();
    const id = await createProspect();
    const registrations = [{ event: "prospect.updated", filter: { "prospect.id": id } }];
    const webhook = await as.admin("POST", "/api/webhooks", { name: "T", url: receiver.url, registrations });
    const { id: webhookId } = bodyOf(webhook, 201, Identified);
    cleanUps.push(() => as.admin("DELETE", `/api/webhooks/${webhookId}`));
    bodyOf(await as.rep("PUT", `/api/prospects/${id}/tags`, { tagIds: [tag.id] }), 200, Tagged);
    await receiver.until(1);
    expect(receiver.receipts[0]?.event.data).toMatchObject({
      changedFields: ["tags"],
      prospect: { id, tags: [{ tag }] },
    });
  });
});
