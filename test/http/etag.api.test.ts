/** Tests that a request gets 304 if its header If-None-Match has the ETag of the client's copy, and the copy is current. */
import { expect, test } from "vitest";
import type { Client } from "../harness/client.ts";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const { id } = bodyOf(await as.owner("POST", "/api/prospects", { name: "Ada", lat: 1, lng: 2 }), 201, Identified);

const get = (client: Client, path: string, tag?: string) =>
  client.send("GET", path, { headers: tag === undefined ? {} : { "If-None-Match": tag } });

test.each(["/api/prospects", "/api/prospects/pins"])(
  "%s answers 304 without a body to the tag of its answer, until a prospect changes",
  async (path) => {
    const { owner } = as;
    const first = await get(owner, path);
    const tag = first.headers.get("etag") ?? "";
    expect(tag).toMatch(/^W\/"[\w.-]+"$/);
    expect(first.headers.get("cache-control")).toBe("private, no-cache");
    const same = await get(owner, path, tag);
    expect([same.status, same.text, same.headers.get("etag")]).toEqual([304, "", tag]);
    expect(same.headers.get("vary")).toContain("Accept-Encoding");
    await owner("PATCH", `/api/prospects/${id}`, { name: `Ada ${path}` });
    const changed = await get(owner, path, tag);
    expect(changed.status).toBe(200);
    expect(changed.headers.get("etag")).not.toBe(tag);
  },
);

test("a prospect that has just changed has a tag, and a request with this tag gets 304 until the next change", async () => {
  const path = `/api/prospects/${id}`;
  const first = (await get(as.owner, path)).headers.get("etag") ?? "";
  expect(first).toMatch(/^W\/"[\w.-]+"$/);
  expect((await get(as.owner, path, first)).status).toBe(304);
  const tag = (await get(as.owner, path, '"old"')).headers.get("etag") ?? "";
  expect((await get(as.owner, path, tag)).status).toBe(304);
  await as.owner("POST", `${path}/notes`, { body: "new" });
  for (const old of [first, tag]) expect((await get(as.owner, path, old)).status).toBe(200);
  expect((await get(as.rep, path, tag)).status).toBe(404);
});
