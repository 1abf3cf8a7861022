/** Tests the filter `sourceId` over HTTP, wherever filters are taken, for rows in a part of the index and for unflushed ones. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { send, tokenOf } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { bodyOf, dataOf, Identified, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const source = uniqueName();
const long = `${source}${"é".repeat(200)}`;
const place = { lat: 1, lng: 1 };
const polygon: [number, number][] = [
  [0, 0],
  [2, 0],
  [2, 2],
  [0, 2],
];
const headers = { Authorization: `Bearer ${await tokenOf(as.owner.email)}` };
const Page = z.object({ items: z.array(Identified), total: z.number() });
const listed = async (sourceId: string, client = as.owner): Promise<number[]> => {
  const path = `/api/prospects?sourceId=${encodeURIComponent(sourceId)}`;
  return bodyOf(await client("GET", path), 200, Page).items.map(({ id }) => id);
};
const create = async (sourceId: string): Promise<number> =>
  dataOf(await as.owner.POST("/api/prospects", { body: { sourceId, ...place } }), 201).id;

// An import stores its rows as a part of the index.
const rows = ["old", "OLD", "other"].map((end) => `${source}-${end},1,1\r\n`).join("");
const file = csvForm(`sourceId,lat,lng\r\n${rows}`);
bodyOf(await send("POST", "/api/prospects/import", { headers, body: file }), 200, z.object({ imported: z.literal(3) }));
const [lower, upper] = [await listed(`${source}-old`), await listed(`${source}-OLD`)];
const young = await create(`${source},new`);
const chosen = `${source}-old, "${source},new" ,nothing`;
const ids = [young, ...lower];

test("values are trimmed, compared exactly and joined with or", async () => {
  expect([lower.length, upper.length, lower[0] === upper[0]]).toEqual([1, 1, false]);
  expect(await listed(` \u200b${source}-old\u00a0`)).toEqual(lower);
  expect(await listed(source)).toEqual([]);
  expect(await listed(chosen)).toEqual(ids);
  expect(await listed(`${source}-old,${source}-OLD`)).toHaveLength(2);
  expect(await listed(`${source}-old`, as.rep)).toEqual([]);
  expect(await listed(`${source}-old`, as.otherOwner)).toEqual([]);
  expect((await listed(",")).length).toBe(4);
});

test("a long source id is found before and after other changes, and a changed one no longer", async () => {
  const id = await create(long);
  const path = `/api/prospects/${id}`;
  expect(await listed(long)).toEqual([id]);
  for (const sourceId of ["", `${source}?`]) {
    expect((await as.owner("PATCH", path, { sourceId })).status).toBe(200);
    expect(await listed(long)).toEqual([]);
    expect(await listed(sourceId === "" ? `${source}?` : sourceId)).toEqual(sourceId === "" ? [] : [id]);
  }
  expect(bodyOf(await as.owner("GET", `/api/prospects?search=${source}`), 200, Page).total).toBe(0);
  await as.owner("DELETE", path);
  expect(await listed(`${source}?`)).toEqual([]);
});

test("it filters pins, clusters, tiles, exports and searches", async () => {
  const query = `sourceId=${encodeURIComponent(chosen)}`;
  const pins = bodyOf(await as.owner("GET", `/api/prospects/pins?${query}`), 200, z.array(Identified));
  expect(pins.map(({ id }) => id).toSorted((a, b) => b - a)).toEqual(ids.toSorted((a, b) => b - a));
  const clusters = `/api/prospects/clusters?bbox=0,0,2,2&zoom=20&${query}`;
  expect(bodyOf(await as.owner("GET", clusters), 200, z.object({ total: z.number() })).total).toBe(2);
  const tile = await as.owner("GET", `/api/prospects/tiles/0/0/0.mvt?${query}`);
  expect(decodedTile(tile.bytes).meta?.[0]?.properties.total).toBe(2);
  const exported = await as.owner("GET", `/api/prospects/export?${query}`);
  expect(exported.text.trimEnd().split("\r\n")).toHaveLength(3);
  const search = { filter: { sourceId: chosen } };
  expect(bodyOf(await as.owner("POST", "/api/prospects/search", search), 200, Page).total).toBe(2);
});

test("it filters bulk jobs, runs of territories and export jobs", async () => {
  const Count = z.object({ count: z.number() });
  const filter = { sourceId: chosen };
  const bulk = { filter, action: { delete: true }, dryRun: true };
  expect(bodyOf(await as.owner("POST", "/api/prospects/bulk", bulk), 200, Count).count).toBe(2);
  const toUserId = dataOf(await as.rep.GET("/api/me")).user.id;
  const { id } = dataOf(await as.owner.POST("/api/territories", { body: { polygon } }), 201);
  const run = { mode: "assign", toUserId, filter, dryRun: true };
  expect(bodyOf(await as.owner("POST", `/api/territories/${id}/runs`, run), 200, Count).count).toBe(2);
  const Job = z.object({ id: z.number(), state: z.string(), total: z.nullable(z.number()) });
  const job = bodyOf(await as.owner("POST", "/api/prospects/exports", filter), 201, Job);
  const look = async () => bodyOf(await as.owner("GET", `/api/prospects/exports/${job.id}`), 200, Job);
  await expect.poll(async () => (await look()).state).toBe("completed");
  expect((await look()).total).toBe(2);
});
