/** Tests that map pins and large answers over HTTP are complete, and gzipped only if the client accepts gzip. */
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { NewProspect, operations } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, present, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const idsOf = (list: readonly { id: number }[]): number[] => list.map(({ id }) => id).sort((a, b) => a - b);
const create = async (body: NewProspect, client = as.rep): Promise<number> =>
  dataOf(await client.POST("/api/prospects", { body }), 201).id;
type Filters = NonNullable<operations["prospectsPins"]["parameters"]["query"]>;
const pins = async (query: Filters, client = as.rep) =>
  dataOf(await client.GET("/api/prospects/pins", { params: { query } }));

test("pins are the list's matches with both coordinates, in the colour of their status", async () => {
  const name = uniqueName();
  const status = present(dataOf(await as.rep.GET("/api/statuses"))[0]);
  const plain = await create({ name, lat: 39.5, lng: -105.25 });
  const colored = await create({ name, lat: 0, lng: 0, currentStatusId: status.id });
  await create({ name, lat: 39.5 });
  await create({ name, lng: -105 });
  await create({ name });
  const gone = await create({ name, lat: 1, lng: 1 });
  await as.rep.DELETE("/api/prospects/{id}", at(gone));
  const byLatitude = (await pins({ search: name })).sort((a, b) => b.lat - a.lat);
  expect(byLatitude).toEqual([
    { id: plain, lat: 39.5, lng: -105.25, statusColor: "#9CA3AF" },
    { id: colored, lat: 0, lng: 0, statusColor: status.color },
  ]);
  const paged = `/api/prospects/pins?search=${name}&bbox=-106,39,-105,40&page=2&pageSize=1`;
  expect(idsOf(bodyOf(await as.rep("GET", paged), 200, z.array(Identified)))).toEqual([plain]);
  expect(await pins({ search: name }, as.rep2)).toEqual([]);
  expect(await pins({ search: name }, as.otherOwner)).toEqual([]);
  expect(await pins({ search: name }, as.viewer)).toHaveLength(2);
});

test("pins are gzipped only if the client accepts gzip", async () => {
  const answerTo = (headers: Record<string, string>) =>
    as.rep.send("GET", "/api/prospects/pins?city=Denver", { headers });
  const plain = await answerTo({});
  expect(plain.headers.get("content-encoding")).toBeNull();
  expect(plain.headers.get("vary")).toContain("Accept-Encoding");
  for (const accepted of ["gzip", "br, gzip;q=0.5", "*"]) {
    const zipped = await answerTo({ "Accept-Encoding": accepted });
    expect(zipped.headers.get("content-encoding"), accepted).toBe("gzip");
    expect(gunzipSync(zipped.bytes)).toEqual(plain.bytes);
  }
  for (const refused of ["gzip;q=0", "br", "identity", "*;q=0"]) {
    const { headers } = await answerTo({ "Accept-Encoding": refused });
    expect(headers.get("content-encoding"), refused).toBeNull();
  }
});

test("an answer of more than 6 MB is complete", async () => {
  const polygon = Array.from({ length: 5_000 }, (_, i) => [-104 - i / 7e15, 39 + i / 9e15]);
  for (let i = 0; i < 34; i++) dataOf(await as.rep.POST("/api/territories", { body: { polygon } }), 201);
  const territories = dataOf(await as.rep.GET("/api/territories"));
  expect(Buffer.byteLength(JSON.stringify(territories))).toBeGreaterThan(6 * 1024 * 1024);
  expect(territories.map((one) => one.polygon)).toEqual(Array(34).fill(polygon));
});
