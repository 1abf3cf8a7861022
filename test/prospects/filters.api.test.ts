/** Tests filters over HTTP: lists, searches, maps, exports and jobs accept the same filters, also for unflushed prospects. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { NewProspect, operations } from "../../docs/client/api.ts";
import { at, type Client, demo } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { bodyOf, dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

type Ring = [number, number][];
const Page = z.object({
  items: z.array(z.object({ id: z.number(), distanceMeters: z.optional(z.number()) })),
  total: z.number(),
  pageSize: z.number(),
});
const Total = z.object({ total: z.number() });
const Count = z.object({ count: z.number() });
const Job = z.object({ id: z.number(), state: z.string(), total: z.nullable(z.number()) });

const create = async (body: NewProspect, client = as.rep): Promise<number> =>
  dataOf(await client.POST("/api/prospects", { body }), 201).id;
const newTerritory = async (polygon: Ring, client = as.owner): Promise<number> =>
  dataOf(await client.POST("/api/territories", { body: { polygon } }), 201).id;
const search = async (body: object, client: Client = as.owner) =>
  bodyOf(await client("POST", "/api/prospects/search", body), 200, Page);
const list = async (query: string, client: Client = as.owner) =>
  bodyOf(await client("GET", `/api/prospects?${query}`), 200, Page);
const ids = ({ items }: z.infer<typeof Page>): number[] => ascending(items.map(({ id }) => id));
const ascending = (list: readonly number[]): number[] => list.toSorted((a, b) => a - b);

const square = rectangle(0, 0, 3, 3);
const whole = await newTerritory(square);
const repId = dataOf(await as.rep.GET("/api/me")).user.id;

async function exportedBy(body: object): Promise<number | null> {
  const { id } = bodyOf(await as.owner("POST", "/api/prospects/exports", body), 201, Job);
  const look = async () => bodyOf(await as.owner("GET", `/api/prospects/exports/${id}`), 200, Job);
  await expect.poll(async () => (await look()).state).toBe("completed");
  return (await look()).total;
}
const runOf = async (body: object): Promise<number> => {
  const run = { mode: "assign", toUserId: repId, dryRun: true, ...body };
  return bodyOf(await as.owner("POST", `/api/territories/${whole}/runs`, run), 200, Count).count;
};
const bulkOf = async (body: object): Promise<number> => {
  const bulk = { action: { delete: true }, dryRun: true, ...body };
  return bodyOf(await as.owner("POST", "/api/prospects/bulk", bulk), 200, Count).count;
};

/** Expects that each endpoint finds exactly these prospects. They must be in the territory `whole`, because a run searches only it. */
async function expectEverywhere(texts: Readonly<Record<string, string>>, expected: readonly number[]): Promise<void> {
  const { territoryId } = texts;
  const filter = territoryId === undefined ? texts : { ...texts, territoryId: Number(territoryId) };
  const query = new URLSearchParams(texts);
  const get = (path: string) => as.owner("GET", `/api/prospects/${path}`);
  const pins = bodyOf(await get(`pins?${query}`), 200, z.array(Identified)).map(({ id }) => id);
  const counts = {
    clusters: bodyOf(await get(`clusters?bbox=0,0,3,3&zoom=5&${query}`), 200, Total).total,
    tile: decodedTile((await get(`tiles/0/0/0.mvt?${query}`)).bytes).meta?.[0]?.properties.total,
    export: (await get(`export?${query}`)).text.trimEnd().split("\r\n").length - 1,
    exportJob: await exportedBy(texts),
    bulk: await bulkOf({ filter: texts }),
    // A run already has a territory in its path, so its filter must not name one.
    ...(territoryId === undefined && { run: await runOf({ filter: texts }) }),
  };
  expect(counts).toEqual(Object.fromEntries(Object.keys(counts).map((place) => [place, expected.length])));
  const found = { list: ids(await list(`${query}`)), search: ids(await search({ filter })), pins: ascending(pins) };
  const all = ascending(expected);
  expect(found).toEqual({ list: all, search: all, pins: all });
}

describe("a territory", () => {
  /** The longest edge of this triangle goes through the point (1, 1). */
  const triangle = ringOf("0 0, 2 2, 0 2");

  test("filters everything, boundary included, and a change of its polygon is seen at once", async () => {
    const name = uniqueName();
    const expected = [await create({ name, lat: 1.5, lng: 0.5 }), await create({ name, lat: 1, lng: 1 })];
    await create({ name, lat: 0.5, lng: 1.5 });
    await create({ name });
    const id = await newTerritory(triangle);
    await expectEverywhere({ search: name, territoryId: `${id}` }, expected);
    expect(ids(await search({ filter: { search: name, territoryId: id } }))).toEqual(expected);
    expect(ids(await search({ filter: { search: name, polygon: triangle } }))).toEqual(expected);
    const moved = { polygon: triangle.map(([lng, lat]): [number, number] => [lng + 3, lat]) };
    dataOf(await as.admin.PATCH("/api/territories/{id}", { ...at(id), body: moved }));
    expect(ids(await list(`search=${name}&territoryId=${id}`))).toEqual([]);
    await as.admin.DELETE("/api/territories/{id}", at(id));
    expect(ids(await list(`search=${name}&territoryId=${id}`))).toEqual([]);
  });

  test("of another company, or unknown, or without a polygon, matches nothing; a rep sees only visible prospects", async () => {
    const name = uniqueName();
    const id = await create({ name, lat: 1.5, lng: 0.5 });
    const own = await newTerritory(triangle);
    const foreign = await newTerritory(triangle, as.otherOwner);
    const empty = dataOf(await as.admin.POST("/api/territories", { body: { name } }), 201).id;
    for (const territoryId of [foreign, empty, 2 ** 49]) {
      expect((await list(`search=${name}&territoryId=${territoryId}`, as.rep)).total).toBe(0);
    }
    const query = `search=${name}&territoryId=${own}`;
    expect(ids(await list(query, as.rep))).toEqual([id]);
    for (const client of [as.rep2, as.otherOwner]) expect((await list(query, client)).total).toBe(0);
  });
});

test("the time of the last change filters everything, at once", async () => {
  const name = uniqueName();
  // The owner creates these prospects. A rep would be the assignee of own new prospects, and a run to the rep does not count these.
  const changed = await create({ name, lat: 1.5, lng: 0.5 }, as.owner);
  await create({ name, lat: 1.5, lng: 0.5 }, as.owner);
  await new Promise((resolve) => setTimeout(resolve, 5));
  dataOf(await as.owner.PATCH("/api/prospects/{id}", { ...at(changed), body: { phoneNumber: "1" } }));
  const { items } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name } } }));
  // `updatedSince` is one millisecond after the second creation. Only `changed` was written after this time.
  const updatedSince = new Date(Math.max(...items.map((item) => Date.parse(item.createdAt))) + 1).toISOString();
  await expectEverywhere({ search: name, updatedSince }, [changed]);
  expect((await list(`search=${name}&updatedSince=2999-01-01`)).total).toBe(0);
});

describe("the source id", () => {
  test("filters everything: values are trimmed, compared exactly and joined with or", async () => {
    const source = uniqueName();
    // An import stores its rows as a part of the index, so here the filter reads a part and not unflushed entries.
    const rows = ["old", "OLD", "other"].map((end) => `${source}-${end},1,1\r\n`).join("");
    const file = csvForm(`sourceId,lat,lng\r\n${rows}`);
    const Imported = z.object({ imported: z.literal(3) });
    bodyOf(await as.owner.send("POST", "/api/prospects/import", { body: file }), 200, Imported);
    const found = async (sourceId: string, client = as.owner) =>
      ids(await list(`sourceId=${encodeURIComponent(sourceId)}`, client));
    const [lower, upper] = [await found(`${source}-old`), await found(`${source}-OLD`)];
    expect([lower.length, upper.length, lower[0] === upper[0]]).toEqual([1, 1, false]);
    const young = await create({ sourceId: `${source},new`, lat: 1, lng: 1 }, as.owner);
    await expectEverywhere({ sourceId: `${source}-old, "${source},new" ,nothing` }, [young, ...lower]);
    expect(await found(` \u200b${source}-old\u00a0`)).toEqual(lower);
    expect(await found(source)).toEqual([]);
    expect(await found(`${source}-old,${source}-OLD`)).toHaveLength(2);
    for (const client of [as.rep, as.otherOwner]) expect(await found(`${source}-old`, client)).toEqual([]);
    const without = (await list("")).total;
    expect((await list("sourceId=,")).total).toBe(without);
    expect((await list(`search=${source}`)).total).toBe(0);
  });

  test("is found even if it is long, and is no longer found after it was changed or removed", async () => {
    const source = uniqueName();
    const long = `${source}${"é".repeat(200)}`;
    const id = await create({ sourceId: long }, as.owner);
    const found = async (sourceId: string) => ids(await list(`sourceId=${encodeURIComponent(sourceId)}`));
    expect(await found(long)).toEqual([id]);
    for (const sourceId of [null, `${source}?`]) {
      dataOf(await as.owner.PATCH("/api/prospects/{id}", { ...at(id), body: { sourceId } }));
      expect(await found(long)).toEqual([]);
      if (sourceId !== null) expect(await found(sourceId)).toEqual([id]);
    }
    await as.owner.DELETE("/api/prospects/{id}", at(id));
    expect(await found(`${source}?`)).toEqual([]);
  });
});

test("the filter `near` sorts by distance and then by id, also across the 180th meridian and over pages, and each item has its distance", async () => {
  const name = uniqueName();
  const far = await create({ name, lat: 0, lng: -179 });
  const nearest = await create({ name, lat: 0, lng: 179.9 });
  // Both twins are equally far away, so the lower id comes first. It may belong to the twin that is created later, because each process
  // has its own range of ids.
  const twins = [await create({ name, lat: 0, lng: -179.9 }), await create({ name, lat: 0, lng: -179.9 })];
  const [second, twin] = ascending(twins);
  await create({ name, lat: 0 });
  const query = `search=${name}&near=0,179.95`;
  const all = await list(query);
  expect(all.items.map(({ id }) => id)).toEqual([nearest, second, twin, far]);
  const distances = all.items.map(({ distanceMeters }) => Math.round(distanceMeters ?? -1));
  expect(distances).toEqual([5_560, 16_679, 16_679, 116_755]);
  const pages = [1, 2, 3, 4].map((page) => list(`${query}&pageSize=1&page=${page}`));
  expect((await Promise.all(pages)).flatMap(({ items }) => items)).toEqual(all.items);
  expect((await list(`${query}&maxMeters=16679`)).total).toBe(1);
  expect((await list(`${query}&maxMeters=16680`)).total).toBe(3);
  const found = await search({ filter: { search: name, near: "0,179.95", maxMeters: 16_680 }, pageSize: 2, page: 2 });
  expect(found.items.map(({ id }) => id)).toEqual([twin]);
});

describe("a faulty filter is refused with the name of its field", () => {
  test.each([
    ["/filter/polygon", { polygon: square.slice(2) }],
    ["/filter/polygon/0/1", { polygon: [[0, 91], ...square] }],
    ["/filter/polygon", { polygon: Array.from({ length: 5_001 }, () => [0, 0]) }],
    ["/filter/territoryId", { territoryId: -1 }],
    ["/filter/maxMeters", { maxMeters: 5 }],
    ["/filter", { color: "red" }],
  ])("%s in a body", async (pointer, filter) => {
    const faults = problemOf(await as.rep("POST", "/api/prospects/search", { filter }), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toContain(pointer);
  });

  test.each([
    ["search", "/api/prospects/search", {}],
    ["bulk job", "/api/prospects/bulk", { action: { delete: true }, dryRun: true }],
    ["run", `/api/territories/${whole}/runs`, { mode: "unassign", dryRun: true }],
  ] as const)(
    "unknown names in the filter of a %s get a short answer with the names of the filters",
    async (_, path, body) => {
      const refused = async (filter: object) => {
        const answer = await as.owner("POST", path, { ...body, filter });
        expect(answer.text.length).toBeLessThan(2_000);
        return problemOf(answer, 400, "validation_failed");
      };
      const [fault, ...others] = await refused({ statuss: "New", town: "Denver", search: "x" });
      expect(others).toEqual([]);
      expect(fault).toMatchObject({ pointer: "/filter", message: expect.stringContaining('"statuss", "town"') });
      expect(fault?.message).toContain("dateFrom, dateTo");
      await refused(Object.fromEntries(Array.from({ length: 1_000 }, (_none, i) => [`${i}`.padEnd(500, "x"), 1])));
    },
  );
});

test("a filter outside `filter` is ignored, and in the body of an export a field `filter` is ignored", async () => {
  const name = uniqueName();
  for (const one of ["anna", "bert"]) await create({ name: `${name} ${one}`, lat: 1, lng: 1 }, as.owner);
  // The search finds parts of words. A single letter such as `a` could also be a part of `name`, so the test searches for a whole word.
  const one = { search: `${name} anna` };
  const all = (await list("")).total;
  expect((await search({ filter: one })).total).toBe(1);
  expect((await search(one)).total).toBe(all);
  expect(await runOf({ filter: one })).toBe(1);
  expect(await runOf(one)).toBeGreaterThan(1);
  expect(await exportedBy(one)).toBe(1);
  expect(await exportedBy({ filter: one })).toBe(all);
});

test("a polygon of 5 000 points that crosses itself everywhere is answered", async () => {
  const polygon = Array.from({ length: 5_000 }, (_, i) => [Math.sin(i * 2.4) * 170, i % 2 === 0 ? -80 : 80]);
  expect((await search({ filter: { polygon } })).items.length).toBeLessThanOrEqual(50);
});

test("clusters group what the list finds, with an exact total, for each role and company", async () => {
  const name = uniqueName();
  await create({ name, lat: 39.5, lng: -105.25 });
  await create({ name, lat: 39.5001, lng: -105.2501 });
  const alone = await create({ name, lat: 40.5, lng: -104 });
  await create({ name });
  const query = { search: name, bbox: "-106,39,-103,41", zoom: 10 };
  const clusters = async (client: Client) => dataOf(await client.GET("/api/prospects/clusters", { params: { query } }));
  const found = await clusters(as.rep);
  expect(found).toMatchObject({ total: 3, unmapped: 1 });
  expect(found.items).toHaveLength(2);
  expect(found.items.find((item) => item.type === "pin")).toMatchObject({ id: alone, count: 1, lat: 40.5 });
  expect(found.items.find((item) => item.type === "cluster")).toMatchObject({ count: 2 });
  expect((await clusters(as.viewer)).total).toBe(3);
  const none = { items: [], total: 0, unmapped: 0 };
  for (const client of [as.rep2, as.otherOwner]) expect(await clusters(client)).toEqual(none);
});

type ListQuery = NonNullable<operations["prospectsList"]["parameters"]["query"]>;
const listOf = async (client: Client, query: ListQuery = {}) =>
  dataOf(await client.GET("/api/prospects", { params: { query } }));

test("pageSize is reduced to 500 and returned; the defaults of page and pageSize are 1 and 50", async () => {
  expect((await listOf(as.admin, { pageSize: 9999 })).pageSize).toBe(500);
  expect(await listOf(as.admin)).toMatchObject({ page: 1, pageSize: 50 });
  for (const pageSize of ["500", "501", "1000000000000000", "9".repeat(30), "9".repeat(400)]) {
    const answer = await as.admin("GET", `/api/prospects?pageSize=${pageSize}`);
    expect(bodyOf(answer, 200, Page)).toMatchObject({ pageSize: 500 });
  }
});

test("the page with the largest number is empty and has the true total", async () => {
  const { total } = await listOf(demo.otherOwner);
  for (const page of [1_000, 2 ** 53 - 1]) {
    expect(await listOf(demo.otherOwner, { page, pageSize: 500 })).toEqual({ items: [], total, page, pageSize: 500 });
  }
});

test("numbers that are not ids match nothing", async () => {
  for (const assignedToUserId of ["0", "00", "9007199254740993", "9".repeat(30), "9".repeat(400)]) {
    expect((await listOf(as.admin, { assignedToUserId })).total).toBe(0);
    const { status, text } = await as.admin("GET", `/api/appointments?assignedToUserId=${assignedToUserId}`);
    expect([status, text]).toEqual([200, "[]"]);
  }
});

test("filters by representative are ignored from sales users, even if they are malformed", async () => {
  const long = `${"9,".repeat(1_990)}${"x".repeat(50)}`;
  expect(long.length).toBeGreaterThan(4_000);
  const { total } = await listOf(as.viewer);
  for (const name of ["rep", "assignedToUserId"] as const) {
    for (const value of [long, "x", '"', "", "🦖"]) {
      expect((await listOf(as.viewer, { [name]: value })).total, name).toBe(total);
    }
    for (const path of ["/api/prospects", "/api/prospects/pins"]) {
      const answer = await as.admin("GET", `${path}?${name}=${long}`);
      const faults = problemOf(answer, 400, "validation_failed");
      expect(faults[0]?.parameter).toBe(name);
    }
  }
});
