/** Tests map tiles over HTTP: filters, rights, conditional requests, compression and bad input. */
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { NewProspect } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { rectangle } from "../harness/rings.ts";
import { dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const create = async (body: NewProspect, client = as.rep): Promise<number> =>
  dataOf(await client.POST("/api/prospects", { body }), 201).id;

const get = (client: Client, path: string, headers: Record<string, string> = {}) =>
  client.send("GET", path, { headers });

/** Requests a tile, and returns the ids of its pins in ascending order. Expects that the tile states their number. */
async function pinsIn(client: Client, path: string): Promise<number[]> {
  const answer = await get(client, path);
  if (answer.status === 204) return [];
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/vnd.mapbox-vector-tile"]);
  const { pins = [], meta } = decodedTile(answer.bytes);
  expect(meta?.[0]?.properties).toEqual({ total: pins.length });
  return ascending(...pins.map(({ id = 0 }) => id));
}

/** Sorts ids before they are compared. Functions take new ids from different blocks, so a later prospect may have a lower id. */
const ascending = (...ids: number[]): number[] => ids.sort((a, b) => a - b);

describe("a tile of prospects", () => {
  test("takes the filters of the list, and shows each caller what the list shows", async () => {
    const name = uniqueName();
    const [west, east] = [await create({ name, lat: 1, lng: -1 }), await create({ name, lat: 1, lng: 1 })];
    const foreign = await create({ name, lat: 1, lng: 1.5 }, as.admin);
    await create({ name });
    const of = (tile: string, more = "") => `/api/prospects/tiles/${tile}.mvt?search=${name}${more}`;
    expect(await pinsIn(as.rep, of("0/0/0"))).toEqual(ascending(west, east));
    expect(await pinsIn(as.rep, of("1/0/0"))).toEqual([west]);
    expect(await pinsIn(as.rep, of("1/1/0"))).toEqual([east]);
    expect(await pinsIn(as.rep, of("1/1/1"))).toEqual([]);
    expect(await pinsIn(as.viewer, of("1/1/0"))).toEqual(ascending(east, foreign));
    expect(await pinsIn(as.rep2, of("0/0/0"))).toEqual([]);
    expect(await pinsIn(as.otherOwner, of("0/0/0"))).toEqual([]);
    expect(await pinsIn(as.admin, of("0/0/0", "&assignedToUserId=unassigned"))).toEqual([foreign]);
    expect(await pinsIn(as.admin, of("0/0/0", "&bbox=0,0,1.2,2"))).toEqual([east]);
    // This box crosses the 180th meridian. It contains all longitudes east of 1.2 and all longitudes west of -0.5.
    expect(await pinsIn(as.admin, of("0/0/0", "&bbox=1.2,0,-0.5,2"))).toEqual(ascending(west, foreign));
    expect(await pinsIn(as.admin, of("0/0/0", "&near=1,1&maxMeters=1000"))).toEqual([east]);
    const polygon = rectangle(-2, 0, 0, 2);
    const { id } = dataOf(await as.admin.POST("/api/territories", { body: { polygon } }), 201);
    expect(await pinsIn(as.admin, of("0/0/0", `&territoryId=${id}`))).toEqual([west]);
    await as.admin.DELETE("/api/territories/{id}", at(id));
  });

  test("has an ETag and answers 304, also if it is empty, until a prospect in it changes", async () => {
    const name = uniqueName();
    const path = `/api/prospects/tiles/3/5/3.mvt?search=${name}`;
    const empty = await get(as.rep, path);
    expect([empty.status, empty.text]).toEqual([204, ""]);
    const none = empty.headers.get("etag") ?? "";
    expect((await get(as.rep, path, { "If-None-Match": none })).status).toBe(304);
    const id = await create({ name, lat: 10, lng: 60 });
    const first = await get(as.rep, path, { "If-None-Match": none });
    expect([first.status, first.headers.get("cache-control")]).toEqual([200, "private, no-cache"]);
    const tag = first.headers.get("etag") ?? "";
    expect((await get(as.rep, path, { "If-None-Match": tag })).status).toBe(304);
    await create({ name, lat: 10, lng: -60 });
    expect((await get(as.rep, path, { "If-None-Match": tag })).status).toBe(304);
    await as.rep.PATCH("/api/prospects/{id}", { ...at(id), body: { lat: 11 } });
    const moved = await get(as.rep, path, { "If-None-Match": tag });
    expect(moved.status).toBe(200);
    expect(decodedTile(moved.bytes).pins?.[0]?.lines).not.toEqual(decodedTile(first.bytes).pins?.[0]?.lines);
    expect((await get(as.rep2, path, { "If-None-Match": tag })).status).toBe(204);
  });

  test("is gzipped if the client accepts it, and HEAD has the same status without a body", async () => {
    const name = uniqueName();
    await create({ name, lat: 10, lng: 60 });
    const path = `/api/prospects/tiles/0/0/0.mvt?search=${name}`;
    const [plain, zipped] = [await get(as.rep, path), await get(as.rep, path, { "Accept-Encoding": "gzip" })];
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(Buffer.compare(gunzipSync(zipped.bytes), plain.bytes)).toBe(0);
    expect(await as.rep.send("HEAD", path)).toMatchObject({ status: 200, text: "" });
    const elsewhere = `/api/prospects/tiles/1/0/1.mvt?search=${name}`;
    expect(await as.rep.send("HEAD", elsewhere)).toMatchObject({ status: 204, text: "" });
  });
});

const shapesIn = async (client: Client, tile: string) => {
  const answer = await get(client, `/api/territories/tiles/${tile}.mvt`);
  if (answer.status === 204) return [];
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/vnd.mapbox-vector-tile"]);
  return (decodedTile(answer.bytes).territories ?? []).map(({ id, properties }) => {
    expect([properties.id, properties.color]).toEqual([id, expect.stringMatching(/^#[0-9A-F]{6}$/)]);
    const { name, assignedToUserId } = properties;
    return { id, name, assignedToUserId };
  });
};
const square = (lng: number, lat: number) => rectangle(lng, lat, lng + 1, lat + 1);

test("a tile of territories shows the company's territories with every change at once, and answers 304 while they are unchanged", async () => {
  const name = uniqueName();
  const [here, there] = ["6/10/24", "6/49/40"];
  const first = dataOf(await as.admin.POST("/api/territories", { body: { name, polygon: square(-120, 40) } }), 201);
  await as.admin.POST("/api/territories", { body: { name: "no polygon" } });
  const shape = { id: first.id, name, assignedToUserId: undefined };
  expect(await shapesIn(as.rep2, here)).toEqual([shape]);
  expect(await shapesIn(as.rep, there)).toEqual([]);
  expect(await shapesIn(as.otherOwner, here)).toEqual([]);
  const path = `/api/territories/tiles/${here}.mvt`;
  const tag = (await get(as.rep, path)).headers.get("etag") ?? "";
  // The second territory is outside the tile, so the copy of the client stays current.
  dataOf(await as.admin.POST("/api/territories", { body: { polygon: square(100, -45) } }), 201);
  expect((await get(as.rep, path, { "If-None-Match": tag })).status).toBe(304);
  expect(await shapesIn(as.rep, there)).toHaveLength(1);
  const renamed = `${name} 2`;
  const assignedToUserId = dataOf(await as.rep.GET("/api/me")).user.id;
  const body = { name: renamed, assignedToUserId };
  dataOf(await as.admin.PATCH("/api/territories/{id}", { ...at(first.id), body }));
  expect((await get(as.rep, path, { "If-None-Match": tag })).status).toBe(200);
  expect(await shapesIn(as.rep, here)).toEqual([{ id: first.id, name: renamed, assignedToUserId }]);
  const features = { type: "FeatureCollection", features: [feature(`${name} 3`, square(-120, 40))] };
  expect((await as.admin("POST", "/api/territories/import", features)).status).toBe(200);
  expect((await shapesIn(as.rep, here)).map((one) => one.name)).toEqual([renamed, `${name} 3`]);
  await as.admin.DELETE("/api/territories/{id}", at(first.id));
  expect((await shapesIn(as.rep, here)).map((one) => one.name)).toEqual([`${name} 3`]);
});

const feature = (name: string, ring: [number, number][]) => ({
  ...{ type: "Feature", properties: { name } },
  geometry: { type: "Polygon", coordinates: [[...ring, ring[0]]] },
});

describe.each(["prospects", "territories"])("a tile of %s is refused with the name of the faulty part", (kind) => {
  test.each([
    ["z", ["23/0/0.mvt", "-1/0/0.mvt", "1e1/0/0.mvt"]],
    ["x", ["0/1/0.mvt", "3/8/0.mvt", "3/x/0.mvt", "22/99999999/0.mvt"]],
    ["y", ["0/0/1.mvt", "0/0/0", "0/0/0.png", "0/0/.mvt", "0/0/-1.mvt"]],
  ])("%s", async (parameter, tiles) => {
    for (const tile of tiles) {
      const faults = problemOf(await as.rep("GET", `/api/${kind}/tiles/${tile}`), 400, "validation_failed");
      expect(new Set(faults.map((fault) => fault.parameter)), tile).toEqual(new Set([parameter]));
    }
  });
});
