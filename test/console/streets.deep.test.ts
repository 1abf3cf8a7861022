/** Tests the map in a real browser: its streets, a provider of streets that does not answer, rings around clusters, and territory names. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { Layer, vectorTile } from "#shared/map/vector-tile.ts";
import { baseUrl } from "../harness/client.ts";
import { rectangle } from "../harness/rings.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { ATTRIBUTION } from "../harness/tile-server.ts";
import { browserForAll, clustersOn, drawnIds, jumpTo, mapOf, soon, type Visit, visit } from "./visit.ts";

const places = [
  [39.75, -104.9],
  [39.76, -104.91],
] as const;
const screen = { width: 1024, height: 620 };

let team: Team;
let admin: Visit;
const ids: number[] = [];
browserForAll(async (browser) => {
  team = await newTeam();
  for (const [lat, lng] of places) {
    ids.push(dataOf(await team.admin.POST("/api/prospects", { body: { name: "Ann", lat, lng } }), 201).id);
  }
  // The tests replace answers of the map provider. Playwright could not replace answers to a service worker, so the page has none.
  admin = await visit(browser, team.admin.email, "/map", screen, { serviceWorkers: "block" });
});

const sourcesOn = (page: Page) =>
  page.evaluate<string[]>("[...new Set(shownMap.queryRenderedFeatures().map(({ source }) => source))]");
const layersOf = (page: Page) => page.evaluate<string[]>("shownMap.getStyle().layers.map(({ id }) => id)");

const Config = z.looseObject({
  basemap: z.object({ light: z.string(), dark: z.string() }),
  streets: z.object({ features: z.array(z.unknown()) }),
});
const configOf = async () => Config.parse(await (await fetch(`${baseUrl()}/config.json`)).json());
const providerUrl = async () => `${new URL((await configOf()).basemap.light).origin}/**`;
const missing = (page: Page) => page.getByText("The street map does not answer.");

test("the streets of the provider come after the prospects, in the colours of the screen", async () => {
  const { page, paths, faults } = admin;
  expect(await mapOf(page)).toBe(places.length);
  await expect.poll(() => drawnIds(page), soon).toEqual(ids);
  await expect.poll(() => sourcesOn(page), soon).toContain("base streets");
  await page.getByText(ATTRIBUTION).waitFor();
  const order = [...paths];
  const firstTile = order.findIndex((path) => path.startsWith("/api/prospects/tiles/"));
  expect(firstTile).toBeGreaterThan(-1);
  expect(order.indexOf("/light")).toBeGreaterThan(firstTile);
  expect(order).not.toContain("/dark");
  expect(await layersOf(page)).not.toContain("land");
  // The colour scheme of the device changes while the page is open. The page then makes a new map, which must show the same prospects.
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(() => [...paths], soon).toContain("/dark");
  await expect.poll(() => drawnIds(page), soon).toEqual(ids);
  await page.emulateMedia({ colorScheme: "light" });
  expect(faults).toEqual([]);
});

test("where the provider does not answer, the map shows the outline, the streets of the demo and one line", async () => {
  const { page } = admin;
  const provider = await providerUrl();
  await page.route(provider, (route) => route.abort());
  await page.reload();
  await missing(page).waitFor();
  await expect.poll(() => drawnIds(page), soon).toEqual(ids);
  expect(await layersOf(page)).toEqual(expect.arrayContaining(["land", "streets", "street-names"]));
  expect((await configOf()).streets.features.length).toBeGreaterThan(20);
  await jumpTo(page, [-104.9268, 39.75], 14);
  await expect.poll(() => sourcesOn(page), soon).toContain("streets");

  await page.unroute(provider);
  await page.evaluate("void dispatchEvent(new Event('online'))");
  await missing(page).waitFor({ state: "detached" });
  await expect.poll(() => sourcesOn(page), soon).toContain("base streets");
});

test("clusters are donuts of their statuses, and those that would overlap are one", async () => {
  const { page } = admin;
  const [status] = dataOf(await team.admin.GET("/api/statuses"));
  const clusters = new Layer("clusters");
  const counts = { count: 1_500, [`status_${status?.id}`]: 1_000, status_none: 500, color: "#000000" };
  for (const [i, x] of [1_000, 1_020, 3_000].entries()) clusters.addPoint([x, 2_048], { key: `${i}`, ...counts });
  const body = Buffer.from(vectorTile([clusters]));
  const contentType = "application/vnd.mapbox-vector-tile";
  await page.route("**/api/prospects/tiles/0/0/0.mvt*", (route) => route.fulfill({ body, contentType }));
  await page.goto("/map?at=0,0,0");
  await expect.poll(async () => (await clustersOn(page)).toSorted((a, b) => a - b), soon).toEqual([1_500, 3_000]);
  // At this zoom, the map shows the world several times and draws each ring several times, so the test compares a set of icons.
  const icons =
    "[...new Set(shownMap.queryRenderedFeatures({ layers: ['clusters'] }).map(({ properties }) => properties.icon))]";
  const shares = `${status?.color},16 #9CA3AF,8`;
  await expect
    .poll(async () => (await page.evaluate<string[]>(icons)).sort(), soon)
    .toEqual([`donut 21 ${shares}`, `donut 22 ${shares}`]);
  await page.unroute("**/api/prospects/tiles/0/0/0.mvt*");
});

test("the name of a territory is not under a number", async () => {
  const { page } = admin;
  const clusters = new Layer("clusters");
  clusters.addPoint([2_048, 2_048], { key: "1", count: 1_500, status_none: 1_500, color: "#000000" });
  const body = Buffer.from(vectorTile([clusters]));
  const contentType = "application/vnd.mapbox-vector-tile";
  const tiles = /\/api\/prospects\/tiles\/8\/53\/97\.mvt/;
  await page.route(tiles, (route) => route.fulfill({ body, contentType }));
  // The coordinates of the centre of the tile 8/53/97.
  const lng = (53.5 / 256) * 360 - 180;
  const lat = (Math.atan(Math.sinh(Math.PI * (1 - (2 * 97.5) / 256))) * 180) / Math.PI;
  const polygon = rectangle(lng - 0.05, lat - 0.05, lng + 0.05, lat + 0.05);
  dataOf(await team.admin.POST("/api/territories", { body: { name: "Middle", polygon } }), 201);
  await page.goto(`/map?at=${lng},${lat},8`);
  await expect.poll(() => clustersOn(page), soon).toEqual([1_500]);
  const names = (place: string) => `shownMap.queryRenderedFeatures(${place}{ layers: ["territory-names"] }).length`;
  await expect.poll(() => page.evaluate(names("")), soon).toBeGreaterThan(0);
  expect(await page.evaluate(names(`shownMap.project([${lng}, ${lat}]), `))).toBe(0);
  await page.unroute(tiles);
});
