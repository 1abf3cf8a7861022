/**
 * Tests the filters of the map over HTTP (territory, polygon and distance). They must work in lists, pins, exports, bulk jobs and searches.
 */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { NewProspect } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const create = async (body: NewProspect, client = as.rep): Promise<number> =>
  dataOf(await client.POST("/api/prospects", { body }), 201).id;
const Page = z.object({
  items: z.array(z.object({ id: z.number(), distanceMeters: z.optional(z.number()) })),
  total: z.number(),
});
const search = async (body: object, client: Client = as.rep) =>
  bodyOf(await client("POST", "/api/prospects/search", body), 200, Page);
const list = async (query: string, client: Client = as.rep) =>
  bodyOf(await client("GET", `/api/prospects?${query}`), 200, Page);
const ids = ({ items }: z.infer<typeof Page>): number[] => items.map(({ id }) => id).sort((a, b) => a - b);

/** A triangle whose longest edge goes through (1, 1). */
const triangle: [number, number][] = [
  [0, 0],
  [2, 2],
  [0, 2],
];

describe("a territory", () => {
  test("filters lists, pins, exports, bulk jobs and searches, boundary included, and a change of its polygon is seen at once", async () => {
    const name = uniqueName();
    const inside = await create({ name, lat: 1.5, lng: 0.5 });
    const onEdge = await create({ name, lat: 1, lng: 1 });
    await create({ name, lat: 0.5, lng: 1.5 });
    await create({ name });
    const { id } = dataOf(await as.admin.POST("/api/territories", { body: { name, polygon: triangle } }), 201);
    const filter = `search=${name}&territoryId=${id}`;
    const expected = [inside, onEdge];
    expect(ids(await list(filter))).toEqual(expected);
    expect(ids(await search({ filter: { search: name, territoryId: id } }))).toEqual(expected);
    expect(ids(await search({ filter: { search: name, polygon: triangle } }))).toEqual(expected);
    const pins = bodyOf(await as.rep("GET", `/api/prospects/pins?${filter}`), 200, z.array(Identified));
    expect(pins.map((pin) => pin.id).sort((a, b) => a - b)).toEqual(expected);
    const file = await as.rep("GET", `/api/prospects/export?${filter}`);
    expect(file.text.trimEnd().split("\r\n")).toHaveLength(1 + expected.length);
    const bulk = { filter: { search: name, territoryId: String(id) }, action: { delete: true }, dryRun: true };
    expect(
      bodyOf(await as.admin("POST", "/api/prospects/bulk", bulk), 200, z.object({ count: z.number() })).count,
    ).toBe(2);

    const moved = { polygon: triangle.map(([lng, lat]): [number, number] => [lng + 3, lat]) };
    dataOf(await as.admin.PATCH("/api/territories/{id}", { ...at(id), body: moved }));
    expect(ids(await list(filter))).toEqual([]);
    await as.admin.DELETE("/api/territories/{id}", at(id));
    expect(ids(await list(filter))).toEqual([]);
  });

  test("filters the file of an export job", async () => {
    const name = uniqueName();
    await create({ name, lat: 1.5, lng: 0.5 });
    await create({ name, lat: 0.5, lng: 1.5 });
    const territory = dataOf(await as.admin.POST("/api/territories", { body: { polygon: triangle } }), 201);
    const body = { search: name, territoryId: String(territory.id), near: "0,0" };
    const { id } = dataOf(await as.rep.POST("/api/prospects/exports", { body }), 201);
    let made = dataOf(await as.rep.GET("/api/prospects/exports/{id}", at(id)));
    while (made.state === "running") made = dataOf(await as.rep.GET("/api/prospects/exports/{id}", at(id)));
    expect(made).toMatchObject({ state: "completed", total: 1 });
  });

  test("of another company, or unknown, or without a polygon, matches nothing; a rep sees only visible prospects", async () => {
    const name = uniqueName();
    const id = await create({ name, lat: 1.5, lng: 0.5 });
    const body = { name, polygon: triangle };
    const own = dataOf(await as.admin.POST("/api/territories", { body }), 201);
    const foreign = dataOf(await as.otherOwner.POST("/api/territories", { body }), 201);
    const empty = dataOf(await as.admin.POST("/api/territories", { body: { name } }), 201);
    for (const territoryId of [foreign.id, empty.id, 2 ** 49]) {
      expect((await list(`search=${name}&territoryId=${territoryId}`)).total).toBe(0);
    }
    expect(ids(await list(`search=${name}&territoryId=${own.id}`))).toEqual([id]);
    expect((await list(`search=${name}&territoryId=${own.id}`, as.rep2)).total).toBe(0);
    expect((await list(`search=${name}&territoryId=${own.id}`, as.otherOwner)).total).toBe(0);
  });
});

test("the time of the last change filters lists, pins, clusters, exports, bulk jobs and searches, seen at once", async () => {
  const name = uniqueName();
  const changed = await create({ name, lat: 1.5, lng: 0.5 });
  await create({ name, lat: 1.5, lng: 0.5 });
  await new Promise((resolve) => setTimeout(resolve, 5));
  const { body } = await as.rep("PATCH", `/api/prospects/${changed}`, { phoneNumber: "1" });
  expect(body).toMatchObject({ id: changed });
  const created = dataOf(await as.rep.GET("/api/prospects", { params: { query: { search: name } } })).items;
  // `updatedSince` is one millisecond after the second creation. Only `changed` was written after this time.
  const updatedSince = new Date(Math.max(...created.map((item) => Date.parse(item.createdAt))) + 1).toISOString();
  const filter = `search=${name}&updatedSince=${updatedSince}`;
  expect(ids(await list(filter))).toEqual([changed]);
  expect(ids(await search({ filter: { search: name, updatedSince } }))).toEqual([changed]);
  const pins = bodyOf(await as.rep("GET", `/api/prospects/pins?${filter}`), 200, z.array(Identified));
  expect(pins.map(({ id }) => id)).toEqual([changed]);
  const clusters = await as.rep("GET", `/api/prospects/clusters?${filter}&bbox=0,0,2,2&zoom=5`);
  expect(clusters.body).toMatchObject({ total: 1 });
  expect((await as.rep("GET", `/api/prospects/export?${filter}`)).text.trimEnd().split("\r\n")).toHaveLength(2);
  const bulk = { filter: { search: name, updatedSince }, action: { delete: true }, dryRun: true };
  expect((await as.admin("POST", "/api/prospects/bulk", bulk)).body).toMatchObject({ count: 1 });
  expect((await list(`search=${name}&updatedSince=2999-01-01`)).total).toBe(0);
});

describe("near", () => {
  test("orders by distance and then by id, over the antimeridian, in pages, and names the distance", async () => {
    const name = uniqueName();
    const far = await create({ name, lat: 0, lng: -179 });
    const nearest = await create({ name, lat: 0, lng: 179.9 });
    // Both twins are equally far away, so the lower id comes first. It may belong to the twin that is created later, because each process
    // has its own range of ids.
    const twins = [await create({ name, lat: 0, lng: -179.9 }), await create({ name, lat: 0, lng: -179.9 })];
    const [second, twin] = twins.toSorted((a, b) => a - b);
    await create({ name, lat: 0 });
    const query = `search=${name}&near=0,179.95`;
    const all = await list(query);
    expect(all.items.map(({ id }) => id)).toEqual([nearest, second, twin, far]);
    expect(all.items.map(({ distanceMeters }) => Math.round(distanceMeters ?? -1))).toEqual([
      5_560, 16_679, 16_679, 116_755,
    ]);
    const pages = [1, 2, 3, 4].map((page) => list(`${query}&pageSize=1&page=${page}`));
    expect((await Promise.all(pages)).flatMap(({ items }) => items)).toEqual(all.items);
    expect((await list(`${query}&maxMeters=16679`)).total).toBe(1);
    expect((await list(`${query}&maxMeters=16680`)).total).toBe(3);
    const found = await search({ filter: { search: name, near: "0,179.95", maxMeters: 16_680 }, pageSize: 2, page: 2 });
    expect(found.items.map(({ id }) => id)).toEqual([twin]);
  });
});

describe("a filter of the map is refused with the name of the faulty field", () => {
  test.each([
    ["territoryId", ["x", "-1", "1.5", "1,2", "9".repeat(16)]],
    ["near", ["", "1", "1,2,3", "NaN,1", "91,0", "0,181", "0,1e999"]],
    ["maxMeters", ["10"]],
    ["updatedSince", ["", "yesterday", "2026-13-01"]],
  ])("%s in a query", async (parameter, values) => {
    for (const value of values) {
      const faults = problemOf(await as.rep("GET", `/api/prospects?${parameter}=${value}`), 400, "validation_failed");
      expect(new Set(faults.map((fault) => fault.parameter)), value).toEqual(new Set([parameter]));
    }
    for (const value of ["-1", "NaN", "1e9", "", "500,abc", "500,7"]) {
      const answer = await as.rep("GET", `/api/prospects?near=0,0&maxMeters=${value}`);
      expect(problemOf(answer, 400, "validation_failed")[0]?.parameter, value).toBe("maxMeters");
    }
  });

  test.each([
    ["/filter/polygon", { polygon: triangle.slice(1) }],
    ["/filter/polygon/0/1", { polygon: [[0, 91], ...triangle] }],
    ["/filter/polygon", { polygon: Array.from({ length: 5_001 }, () => [0, 0]) }],
    ["/filter/territoryId", { territoryId: -1 }],
    ["/filter/maxMeters", { maxMeters: 5 }],
    ["/filter", { color: "red" }],
  ])("%s in a body", async (pointer, filter) => {
    const faults = problemOf(await as.rep("POST", "/api/prospects/search", { filter }), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toContain(pointer);
  });
});

test("a search without a filter is the list", async () => {
  const [found, listed] = await Promise.all([search({ pageSize: 500 }, as.owner), list("pageSize=500", as.owner)]);
  expect(found.items.length).toBe(listed.items.length);
});

test("a polygon of 5 000 points that crosses itself everywhere is answered", async () => {
  const polygon = Array.from({ length: 5_000 }, (_, i) => [Math.sin(i * 2.4) * 170, i % 2 === 0 ? -80 : 80]);
  expect((await search({ filter: { polygon } }, as.owner)).items.length).toBeLessThanOrEqual(50);
});

describe("clusters", () => {
  const Clusters = z.object({
    items: z.array(z.object({ type: z.string(), id: z.optional(z.number()), count: z.number(), lat: z.number() })),
    total: z.number(),
    unmapped: z.number(),
  });
  const clusters = async (query: string, client: Client = as.rep) =>
    bodyOf(await client("GET", `/api/prospects/clusters?${query}`), 200, Clusters);

  test("group what the list finds, with an exact total, for each role and company", async () => {
    const name = uniqueName();
    await create({ name, lat: 39.5, lng: -105.25 });
    await create({ name, lat: 39.5001, lng: -105.2501 });
    const alone = await create({ name, lat: 40.5, lng: -104 });
    await create({ name });
    const { id } = dataOf(
      await as.admin.POST("/api/territories", {
        body: {
          polygon: [
            [-106, 39],
            [-105, 39],
            [-105, 40],
            [-106, 40],
          ],
        },
      }),
      201,
    );
    const query = `search=${name}&bbox=-106,39,-103,41&zoom=10`;
    const found = await clusters(query);
    expect(found).toMatchObject({ total: 3, unmapped: 1 });
    expect(found.items).toHaveLength(2);
    expect(found.items.find((item) => item.type === "pin")).toMatchObject({ id: alone, count: 1, lat: 40.5 });
    expect(found.items.find((item) => item.type === "cluster")).toMatchObject({ count: 2 });
    expect(await clusters(`${query}&territoryId=${id}`)).toMatchObject({ total: 2, unmapped: 0 });
    expect((await clusters(query, as.viewer)).total).toBe(3);
    expect(await clusters(query, as.rep2)).toEqual({ items: [], total: 0, unmapped: 0 });
    expect(await clusters(query, as.otherOwner)).toEqual({ items: [], total: 0, unmapped: 0 });
  });

  test.each([
    ["bbox", "zoom=3"],
    ["bbox", "zoom=3&bbox=0,10,1,5"],
    ["zoom", "bbox=0,0,1,1"],
    ["zoom", "bbox=0,0,1,1&zoom=23"],
    ["zoom", "bbox=0,0,1,1&zoom=NaN"],
  ])("without a valid %s are refused: %s", async (parameter, query) => {
    const faults = problemOf(await as.rep("GET", `/api/prospects/clusters?${query}`), 400, "validation_failed");
    expect(faults.map((fault) => fault.parameter)).toEqual([parameter]);
  });

  test("a box around the whole earth at the highest zoom has at most 2 000 items", async () => {
    const found = await clusters("bbox=-180,-90,180,90&zoom=22", as.owner);
    expect(found.items.length).toBeLessThanOrEqual(2_000);
  });
});
