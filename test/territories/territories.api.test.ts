/** Tests territories over HTTP: methods, refused input and webhook events. matrix.api.test.ts tests who may read and change one. */
import { expect, onTestFinished, test } from "vitest";
import type { NewTerritory, Territory, TerritoryPatch } from "../../docs/client/api.ts";
import { denver, phoenix } from "../../infra/local/demo/cities.ts";
import { at, type Client, demo, json } from "../harness/client.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

const square = ringOf("-105 39, -104 39, -104 40, -105 40, -105 39");

const { id: unchanged } = dataOf(await as.rep.POST("/api/territories", { body: {} }), 201);
const points = (...polygon: unknown[]): object => ({ polygon });

const deletedAfterTest = (client: Client, id: number): void =>
  onTestFinished(async () => void (await client.DELETE("/api/territories/{id}", at(id))));

async function create(body: NewTerritory = {}, client = as.rep): Promise<Territory> {
  const made = dataOf(await client.POST("/api/territories", { body }), 201);
  deletedAfterTest(client, made.id);
  return made;
}

const change = (client: Client, id: number, body: TerritoryPatch) =>
  client.PATCH("/api/territories/{id}", { ...at(id), body });

const importOf = (headers: Record<string, string>, body: string) =>
  as.rep.send("POST", "/api/territories/import", { headers, body });

const userId = async (email: string): Promise<number> =>
  dataOf(await as.rep.GET("/api/users")).find((user) => user.email === email)?.id ?? 0;

test("all fields of a new territory are optional", async () => {
  const answer = await as.rep.POST("/api/territories", { body: {} });
  const made = dataOf(answer, 201);
  expect(answer.response.headers.get("location")).toBe(`/api/territories/${made.id}`);
  expect(made).toMatchObject({ name: "Untitled Territory", polygon: [], totalProperties: 0, assignedToUserId: null });
  dataOf(await as.rep.DELETE("/api/territories/{id}", at(made.id)));
});

test("territories are listed newest first", async () => {
  const rep2 = await userId(as.rep2.email);
  const name = uniqueName();
  const older = await create();
  const made = await create({
    name,
    polygon: square,
    totalProperties: 120,
    assignedToUserId: rep2,
    ...{ id: 1, companyId: 1 },
  });
  expect(made.id).not.toBe(1);
  expect(made).toMatchObject({ name, polygon: square, totalProperties: 120, assignedToUserId: rep2 });
  expect(dataOf(await as.rep2.GET("/api/territories/{id}", at(made.id)))).toEqual(made);
  const ids = dataOf(await as.viewer.GET("/api/territories")).map(({ id }) => id);
  expect(ids.filter((id) => [made.id, older.id].includes(id))).toEqual([made.id, older.id]);
});

test("territories return a polygon of 5 000 points exactly as it was sent", async () => {
  const polygon = Array.from({ length: 5_000 }, (_, i): [number, number] => [
    -104 - (i + 1) / 7_000.7,
    39 + (i + 1) / 9_000.9,
  ]);
  const made = await create({ polygon });
  expect(made.polygon).toEqual(polygon);
  expect(dataOf(await as.rep.GET("/api/territories/{id}", at(made.id)))).toEqual(made);
});

test.each<[string, object]>([
  ["/polygon", points()],
  ["/polygon", points([0, 0], [1, 1])],
  ["/polygon", { polygon: null }],
  ["/polygon", { polygon: {} }],
  ["/polygon/1/0", points([0, 0], [180.1, 0], [1, 1])],
  ["/polygon/2/1", points([0, 0], [1, 0], [1, -90.5])],
  ["/polygon/0/1", points([0, null], [1, 0], [1, 1])],
  ["/polygon/0/0", points(["NaN", 0], [1, 0], [1, 1])],
  ["/polygon/0", points([0, 0, 0], [1, 0], [1, 1])],
  ["/polygon/0", points([0], [1, 0], [1, 1])],
  ["/totalProperties", { totalProperties: -1 }],
  ["/totalProperties", { totalProperties: 1.5 }],
  ["/totalProperties", { totalProperties: 2 ** 53 }],
  ["/name", { name: "x".repeat(256) }],
  ["/name", { name: null }],
  ["/assignedToUserId", { assignedToUserId: 2 ** 50 }],
])("an error at %s is reported, case %#", async (pointer, body) => {
  for (const answer of [await as.rep.POST("/api/territories", { body }), await change(as.rep, unchanged, body)]) {
    expect(problemOf(answer, 400, "validation_failed").map((fault) => fault.pointer)).toContain(pointer);
  }
});

test("territories are also returned in GeoJSON, in the order of the list", async () => {
  const clockwise = ringOf("-105 39, -105 40, -104 40");
  const bare = await create({ name: uniqueName() });
  const drawn = await create({ name: uniqueName(), polygon: clockwise, totalProperties: 3 });
  const answer = await as.rep("GET", "/api/territories.geojson");
  expect(answer.headers.get("content-type")).toBe("application/geo+json");
  const { type, features } = dataOf(await as.rep.GET("/api/territories.geojson"));
  expect(type).toBe("FeatureCollection");
  const listed = dataOf(await as.rep.GET("/api/territories"));
  expect(features.map(({ id }) => id)).toEqual(listed.map(({ id }) => id));
  const { id, polygon: _polygon, ...properties } = drawn;
  const ring = ringOf("-105 39, -104 40, -105 40, -105 39");
  expect(features.find((feature) => feature.id === id)).toEqual({
    type: "Feature",
    id,
    geometry: { type: "Polygon", coordinates: [ring] },
    properties,
  });
  expect(features.find((feature) => feature.id === bare.id)?.geometry).toBeNull();
  expect(dataOf(await as.rep.GET("/api/territories/{id}", at(id))).polygon).toEqual(clockwise);
});

test("territories contain prospects on both sides of the 180th meridian in every reader", async () => {
  const polygon = rectangle(179, -17, -179, -16);
  const { id } = await create({ name: uniqueName(), polygon });
  const tag = uniqueName();
  for (const lng of [179.5, -179.5, 0]) {
    expect((await as.owner("POST", "/api/prospects", { name: tag, lat: -16.5, lng })).status).toBe(201);
  }
  const search = encodeURIComponent(tag);
  const found = await as.owner("GET", `/api/prospects?search=${search}&territoryId=${id}`);
  expect(found.body).toMatchObject({ total: 2 });
  const drawn = await as.owner("POST", "/api/prospects/search", { filter: { search: tag, polygon } });
  expect(drawn.body).toMatchObject({ total: 2 });
  const stats = await as.owner("GET", `/api/territories/${id}/stats`);
  expect(stats.body).toMatchObject({ total: 2 });
  const { features } = dataOf(await as.owner.GET("/api/territories.geojson"));
  const geometry = features.find((feature) => feature.id === id)?.geometry;
  expect(geometry).toMatchObject({ type: "MultiPolygon", coordinates: { length: 2 } });
  for (const x of [0, 7]) expect((await as.owner("GET", `/api/territories/tiles/3/${x}/4.mvt`)).status).toBe(200);
});

test("territories are imported from GeoJSON, with the media type of GeoJSON, and once for each idempotency key", async () => {
  const features = [
    {
      type: "Feature",
      geometry: { type: "Polygon", coordinates: [square] },
      properties: { name: uniqueName(), unknown: { deep: [1] } },
    },
    { type: "Feature", geometry: { type: "Point", coordinates: [1, 2] }, properties: null },
  ];
  const body = JSON.stringify({ type: "FeatureCollection", features });
  const headers = { "Content-Type": "application/geo+json; charset=utf-8", "Idempotency-Key": uniqueName() };
  const first = await importOf(headers, body);
  expect(first.status, first.text).toBe(200);
  expect(first.body).toMatchObject({ created: 1, skipped: 0, failed: 1 });
  const { "Idempotency-Key": _key, ...keyless } = headers;
  const marked = await importOf(keyless, `\uFEFF${body}`);
  expect(marked.body).toMatchObject({ created: 0, skipped: 1, failed: 1 });
  const mercator = { type: "FeatureCollection", features, crs: { type: "name", properties: { name: "EPSG:3857" } } };
  const refused = await importOf(keyless, JSON.stringify(mercator));
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("/crs: is EPSG:3857, and the service reads only CRS84 and EPSG:4326");
  const lone = await importOf(keyless, JSON.stringify(features[0]));
  expect(lone.status).toBe(400);
  expect(lone.text).toContain("/type: must be FeatureCollection, and is Feature");
  const again = await importOf(headers, body);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.body).toEqual(first.body);
  const listed = dataOf(await as.rep.GET("/api/territories"));
  const [made, ...more] = listed.filter(({ name }) => name === features[0]?.properties?.name);
  expect(more).toEqual([]);
  expect(made).toMatchObject({ polygon: square, assignedToUserId: null });
  deletedAfterTest(as.rep, present(made).id);
  const elsewhere = await as.rep.send("POST", "/api/territories", { headers, body: "{}" });
  problemOf(elsewhere, 415, "unsupported_media_type");
});

test("a malformed import is refused and creates nothing", async () => {
  const before = dataOf(await as.rep.GET("/api/territories")).length;
  const collection = (features: string): string => `{"type":"FeatureCollection","features":${features}`;
  for (const [body, status, code] of [
    [`${collection(`[${"{},".repeat(49_999)}{}]`)}}`, 400, "validation_failed"],
    [`${collection(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)}}`, 400, "malformed_json"],
    [`${collection(`["${"x".repeat(1_000_000)}"]`)}}`, 413, "payload_too_large"],
    ['{"type":"Feature","geometry":null,"properties":null}', 400, "validation_failed"],
    [`${collection('"all"')}}`, 400, "validation_failed"],
    ["", 400, "validation_failed"],
    [collection("["), 400, "malformed_json"],
    [`${collection('[{"__proto__":{"type":"Feature"}}]')}}`, 400, "malformed_json"],
  ] as const) {
    problemOf(await importOf(json, body), status, code);
  }
  expect(dataOf(await as.rep.GET("/api/territories"))).toHaveLength(before);
});

test("territories emit events when created, changed and deleted, and none for a patch that changes nothing", async () => {
  const registrations = ["created", "updated", "deleted"].map((verb) => ({ event: `territory.${verb}` }));
  const { receiver } = await subscribe(as.otherOwner, registrations);
  const made = dataOf(await as.otherRep.POST("/api/territories", { body: { polygon: square } }), 201);
  await change(as.otherRep, made.id, {});
  await change(as.otherRep, made.id, { name: "Second" });
  await as.otherRep.DELETE("/api/territories/{id}", at(made.id));
  await receiver.until(3);
  const received = new Map(receiver.receipts.map(({ event }) => [event.event, event.data.territory]));
  expect([...received.keys()].toSorted()).toEqual(["territory.created", "territory.deleted", "territory.updated"]);
  expect(received.get("territory.created")).toEqual(made);
  expect(received.get("territory.updated")).toMatchObject({ ...made, name: "Second", updatedAt: expect.any(String) });
  expect(received.get("territory.deleted")).toMatchObject({ id: made.id, polygon: square });
  expect(receiver.receipts).toHaveLength(3);
});

test.each([
  [denver, demo.owner],
  [phoenix, demo.otherOwner],
])("the demo company in $name has a territory for each neighbourhood, some with an assignee", async (city, client) => {
  const territories = dataOf(await client.GET("/api/territories"));
  // Another test may create a territory with the name of a neighbourhood. The demo territories are older. The list begins with the newest
  // territory, so the oldest territory of each name replaces the others in this map.
  const oldest = new Map(territories.map((territory) => [territory.name, territory]));
  const found = city.neighbourhoods.map(({ name }) => present(oldest.get(name)));
  expect(found.filter(({ assignedToUserId }) => assignedToUserId !== null)).not.toHaveLength(0);
  for (const { id, polygon } of found) {
    expect(polygon.at(0)).toEqual(polygon.at(-1));
    const { total } = dataOf(await client.GET("/api/territories/{id}/stats", at(id)));
    expect(total).toBeGreaterThan(0);
  }
});
