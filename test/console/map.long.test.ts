/** Tests the maps of the console in a real browser: what they show, areas, territories, many prospects, failures, the end of a session. */
import { readFileSync } from "node:fs";
import type { Page, Request } from "playwright-core";
import { expect, test } from "vitest";
import type { Client } from "../harness/client.ts";
import { rectangle } from "../harness/rings.ts";
import { dataOf } from "../harness/shapes.ts";
import { mapStage, places, small } from "./map-stage.ts";
import {
  ascending,
  chooseChange,
  chooseCsv,
  chooseUser,
  clickUntil,
  closeMessages,
  clustersOn,
  drawnIds,
  jumpTo,
  mapOf,
  phone,
  pinsOf,
  positionOf,
  soon,
  territoriesOn,
  violationsOf,
} from "./visit.ts";

/** The corners of an area that contains Ann and Bob. */
const around = [
  [39.77, -104.97],
  [39.77, -104.94],
  [39.74, -104.94],
  [39.74, -104.97],
] as const;

/** Returns points on the lines between neighbouring points: six for each line. The sixth is the end of the line. */
const stepsOf = (points: readonly (readonly [x: number, y: number])[]) =>
  points.slice(1).flatMap(([x, y], index) => {
    const [fromX, fromY] = points[index] ?? [x, y];
    return [1, 2, 3, 4, 5, 6].map(
      (step) => [fromX + ((x - fromX) * step) / 6, fromY + ((y - fromY) * step) / 6] as const,
    );
  });

const { idsOf, team, admin } = mapStage();

const namesOf = async (client: Client) =>
  dataOf(await client.GET("/api/prospects"))
    .items.map(({ name }) => name)
    .sort();

test.each(["/map", "/field"])(
  "a deployment without a provider shows the outline on %s, asks no other origin, and says nothing",
  async (path) => {
    const { page, context } = admin();
    const config: object = await (await page.request.get("/config.json")).json();
    await context.route("**/config.json", (route) =>
      route.fulfill({ json: { ...config, basemap: null, streets: null } }),
    );
    const layers = () => page.evaluate<string[]>("shownMap.getStyle().layers.map(({ id }) => id)");
    const origins = new Set<string>();
    const listen = (request: Request) => origins.add(new URL(request.url()).origin);
    context.on("request", listen);
    await page.goto(path);
    await expect.poll(layers, soon).toContain("land");
    await page.locator("[data-ready='true'] canvas").waitFor();
    expect((await layers()).filter((id) => id === "streets" || id.startsWith("base "))).toEqual([]);
    expect([...origins].filter((origin) => origin.startsWith("http"))).toEqual([new URL(page.url()).origin]);
    expect(await page.getByText("The street map does not answer.").count()).toBe(0);
    context.off("request", listen);
    await context.unroute("**/config.json");
  },
);

test("“Fit all” shows all prospects, and the legend names the statuses", async () => {
  const { page } = admin();
  await page.goto("/map?at=10,50,9");
  await mapOf(page);
  await page.getByRole("button", { name: "Fit all" }).click();
  await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob", "Cid"));
  await page.getByText("Legend", { exact: true }).click();
  const named = await page.locator("details li").allInnerTexts();
  const statuses = dataOf(await team().admin.GET("/api/statuses")).filter(({ isActive }) => isActive);
  expect(named).toEqual([...statuses.map(({ value }) => value), "No status"]);
});

test("on a screen of 1024 pixels, the table and an open prospect leave the map at least 360 pixels", async () => {
  const { page } = admin();
  await page.setViewportSize({ width: 1024, height: 620 });
  await page.goto(`/map?table=1&prospect=${idsOf("Ann")[0]}`);
  await page.getByRole("complementary", { name: "Prospect" }).getByRole("heading", { name: "Ann" }).waitFor();
  await page.getByRole("region", { name: "Prospects of the map" }).locator("tbody tr").first().waitFor();
  const size = "(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])(shownMap.getContainer())";
  const [width = 0, height = 0] = await page.evaluate<number[]>(size);
  expect(width).toBeGreaterThanOrEqual(360);
  expect(height).toBeGreaterThanOrEqual(300);
  await page.setViewportSize(small);
});

test("Back closes a panel and turns a page back, and the URL has the part of the map", async () => {
  const { page } = admin();
  const at = () => new URL(page.url()).searchParams.get("at");
  const camera = (): Promise<string> =>
    page.evaluate("[...shownMap.getCenter().toArray(), shownMap.getZoom()].map((x) => x.toFixed(2)).join()");
  const panel = page.getByRole("complementary", { name: "Prospect" });
  await page.goto("/map?table=1");
  await mapOf(page);
  expect(at()).toBe(null);
  await jumpTo(page, [-104.95, 39.75], 12);
  await expect.poll(at, soon).not.toBe(null);
  await page.getByRole("button", { name: "Ann", exact: true }).click();
  await panel.getByRole("heading", { name: "Ann" }).waitFor();
  await jumpTo(page, [-104.75, 39.95], 11);
  await expect.poll(at, soon).toContain("-104.75");
  await page.reload();
  await mapOf(page);
  expect(await camera()).toBe("-104.75,39.95,11.00");
  await page.goBack();
  await panel.waitFor({ state: "detached" });
  expect(await camera()).toBe("-104.95,39.75,12.00");
  await page.getByRole("link", { name: "Show as a list" }).click();
  await page.getByRole("button", { name: "Bob", exact: true }).click();
  await page.getByRole("button", { name: "Close the prospect" }).click();
  await panel.waitFor({ state: "detached" });
  await page.goBack();
  await panel.getByRole("heading", { name: "Bob" }).waitFor();
  await page.goBack();
  await panel.waitFor({ state: "detached" });
  expect(new URL(page.url()).pathname).toBe("/prospects");
  await page.goBack();
  await mapOf(page);
  expect(await camera()).toBe("-104.95,39.75,12.00");
});

const clickOn = async (page: Page, [lat, lng]: readonly [lat: number, lng: number]) =>
  page.mouse.click(...(await positionOf(page, lng, lat)));

async function beginArea(page: Page): Promise<void> {
  await mapOf(page);
  await jumpTo(page, [-104.955, 39.755], 12);
  await page.getByRole("button", { name: "Select an area" }).click();
}

test("an admin draws around prospects, sees their number before they are assigned, and undoes it", async () => {
  const { page } = admin();
  await page.goto("/map");
  await beginArea(page);
  await clickOn(page, around[0]);
  for (const [lat, lng] of around) await page.mouse.move(...(await positionOf(page, lng, lat)), { steps: 6 });
  await clickOn(page, around[3]);
  const dialog = page.getByRole("dialog");
  await chooseChange(page, "Assign to", "Ravi Rep");
  await dialog.getByText("This concerns 2 prospects.").waitFor();
  expect(await namesOf(team().rep)).toEqual([]);
  await dialog.getByRole("button", { name: "Assign 2 prospects to Ravi Rep" }).click();
  await page.getByRole("status").getByText("2 prospects changed.").waitFor();
  expect(await namesOf(team().rep)).toEqual(["Ann", "Bob"]);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("status").getByText("2 prospects restored.").waitFor();
  expect(await namesOf(team().rep)).toEqual([]);
});

test("an admin draws around prospects with a pressed mouse button, and on a phone with a finger", async () => {
  const { page, context } = admin();
  const dialog = page.getByRole("dialog");
  const areas = (): Promise<number> =>
    page.evaluate("shownMap.getStyle().sources['selected-area']?.data.features.length ?? 0");
  const end = async (): Promise<void> => {
    await dialog.getByLabel("Change", { exact: true }).selectOption({ label: "Delete" });
    await dialog.getByText("This concerns 2 prospects.").waitFor();
    expect(await areas()).toBe(1);
    await dialog.getByRole("button", { name: "Close", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await areas()).toBe(0);
  };
  const points = async () => Promise.all(around.map(([lat, lng]) => positionOf(page, lng, lat)));

  await beginArea(page);
  const [first = expect.fail("no corner"), ...others] = await points();
  await page.mouse.move(...first);
  await page.mouse.down();
  for (const point of others) await page.mouse.move(...point, { steps: 6 });
  await page.mouse.up();
  await end();

  await page.setViewportSize(phone);
  await beginArea(page);
  const finger = await context.newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...at: readonly (readonly [number, number])[]) =>
    finger.send("Input.dispatchTouchEvent", { type, touchPoints: at.map(([x, y]) => ({ x, y })) });
  const [start = expect.fail("no corner"), ...way] = await points();
  await touch("touchStart", start);
  for (const point of stepsOf([start, ...way])) await touch("touchMove", point);
  await touch("touchEnd");
  await finger.detach();
  await end();
  await page.setViewportSize(small);
});

test("an admin selects prospects with a frame by the keyboard", async () => {
  const { page } = admin();
  const { keyboard } = page;
  await jumpTo(page, [-104.955, 39.755], 12);
  const button = page.getByRole("button", { name: "Select an area" });
  await button.focus();
  await keyboard.press("Enter");
  const frame = page.getByRole("application", { name: "Frame around prospects" });
  const inside = async (count: string, ...keys: readonly string[]): Promise<void> => {
    for (const key of keys) await keyboard.press(key);
    await frame.getByText(count, { exact: true }).waitFor();
  };
  const times = (count: number, key: string) => Array.from({ length: count }, () => key);
  await inside("2 prospects");
  // Ann is east of the middle of the map, and Bob west of it. The left edge of the frame moves to the middle.
  const width: number = await page.evaluate("shownMap.getContainer().clientWidth");
  await inside("1 prospect", ...times(Math.round(width / 4 / 20), "ArrowRight"));
  await inside("0 prospects", ...times(9, "Shift+ArrowUp"));
  expect(await violationsOf(page)).toEqual([]);
  await keyboard.press("Escape");
  await frame.waitFor({ state: "detached" });
  expect(await button.evaluate((element) => element.matches(":focus"))).toBe(true);
  await keyboard.press("Enter");
  await inside("2 prospects");
  // Cid is far in the north. A frame at the upper edge of the map cannot move up, so the map moves. Ann and Bob are then below the frame.
  await inside("1 prospect", ...times(3, "-"), ...times(9, "ArrowUp"));
  await keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await chooseChange(page, "Assign to", "Ravi Rep");
  await dialog.getByText("This concerns 1 prospect.").waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await closeMessages(page);
});

test("an admin draws a territory, moves its corners, and assigns the prospects inside", async () => {
  const { page } = admin();
  await page.getByRole("link", { name: "Territories" }).click();
  await page.locator('[data-ready="true"] canvas').waitFor();
  await jumpTo(page, [-104.955, 39.755], 12);
  // The map shows the prospects, so that the user sees what a territory would contain.
  await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob"));
  await page.getByRole("button", { name: "Draw a territory" }).click();
  const [west, east, south, north] = [-104.955, -104.94, 39.745, 39.755];
  const corners = [
    [north, west],
    [north, east],
    [south, east],
    [south, west],
  ] as const;
  for (const corner of [...corners, corners[0]]) await clickOn(page, corner);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("North");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "North" }).waitFor();
  const [territory] = dataOf(await team().admin.GET("/api/territories"));
  await expect.poll(() => territoriesOn(page), soon).toEqual([territory?.id]);
  const panel = page.getByRole("complementary", { name: "Territory North" });
  await clickUntil(page, places.Ann, panel);
  await panel.getByText("1 prospect inside.").waitFor();

  await jumpTo(page, [-104.955, 39.755], 12);
  await panel.getByRole("button", { name: "Move corners" }).click();
  await page.mouse.move(...(await positionOf(page, west, north)));
  await page.mouse.down();
  await page.mouse.move(...(await positionOf(page, -104.97, 39.765)), { steps: 8 });
  await page.mouse.up();
  await panel.getByRole("button", { name: "Save the corners" }).click();
  await panel.getByText("2 prospects inside.").waitFor();
  expect(await violationsOf(page)).toEqual([]);

  await panel.getByRole("button", { name: "Change the prospects" }).click();
  await chooseChange(page, "Assign to", "Ravi Rep");
  await dialog.getByRole("button", { name: "Assign 2 prospects to Ravi Rep" }).click();
  await expect.poll(() => namesOf(team().rep), soon).toEqual(["Ann", "Bob"]);
});

test("an admin saves the territories as GeoJSON, and imports others", async () => {
  const { page } = admin();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download GeoJSON" }).click();
  const file = dataOf(await team().admin.GET("/api/territories.geojson"));
  expect(JSON.parse(readFileSync(await (await saved).path(), "utf8"))).toEqual(file);
  const [north] = file.features;
  expect(file.features).toMatchObject([{ properties: { name: "North" } }]);

  const south = { type: "Polygon", coordinates: [rectangle(-104.97, 39.645, -104.94, 39.665)] };
  const others = [
    north,
    { ...north, properties: { name: "South" }, geometry: south },
    { type: "Feature", properties: { name: "Nowhere" }, geometry: { type: "Point", coordinates: [0, 0] } },
  ];
  const text = JSON.stringify({ type: "FeatureCollection", features: others });
  await page
    .getByLabel("GeoJSON file")
    .setInputFiles({ name: "others.geojson", mimeType: "application/geo+json", buffer: Buffer.from(text) });
  const dialog = page.getByRole("dialog", { name: "Import of territories" });
  await dialog.getByText("1 feature imported, 1 skipped, 1 failed.").waitFor();
  const rows = await dialog.locator("tbody tr").allInnerTexts();
  expect(rows.map((row) => row.split("\t").slice(0, 2))).toEqual([
    ["1", "North"],
    ["3", "Nowhere"],
  ]);
  expect(rows[1]).toContain("failed: geometry is a Point, and a territory is a Polygon.");
  expect(await violationsOf(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await page.getByRole("button", { name: "South" }).waitFor();
  await page.getByRole("button", { name: "Close the territory" }).click();
  const known = dataOf(await team().admin.GET("/api/territories")).map(({ id }) => id);
  expect(known).toHaveLength(2);
  await expect.poll(() => territoriesOn(page), soon).toEqual(ascending(known));
});

test("an admin clicks on a territory of the map, and shows only its prospects", async () => {
  const { page } = admin();
  await page.getByRole("link", { name: "Map" }).click();
  await mapOf(page);
  await jumpTo(page, [-104.955, 39.755], 12);
  await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob"));
  const north = dataOf(await team().admin.GET("/api/territories")).find(({ name }) => name === "North");
  await expect.poll(() => territoriesOn(page), soon).toContain(north?.id);
  const card = page.getByRole("region", { name: "Territory North" });
  await clickUntil(page, [39.75, -104.943], card);
  await card.getByText("2 prospects inside.").waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await card.getByRole("button", { name: "Show only these" }).click();
  await page.getByText("2 prospects on the map.").waitFor();
  await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob"));
  await card.getByRole("button", { name: "Close the territory" }).click();
  await card.waitFor({ state: "detached" });
});

test("an admin imports a file of more than 4 MB, and the map has exact clusters", { timeout: 400_000 }, async () => {
  const { page, faults } = admin();
  // The import ignores this column. With it, the file is longer than 4 MB, but the import takes no longer.
  const remark = "This makes the file long. ".repeat(32);
  const rows = Array.from({ length: 5_100 }, (_, i) => {
    const [lat, lng] = [39.8 + (i % 100) / 10_000, -104.9 + Math.floor(i / 100) / 10_000];
    return `Door ${i},${lat.toFixed(4)},${lng.toFixed(4)},${remark}`;
  });
  const buffer = Buffer.from(["name,lat,lng,remark", ...rows, "Pole,91,0,"].join("\n"));
  expect(buffer.length).toBeGreaterThan(4_000_000);
  await page.getByRole("link", { name: "Imports and exports" }).click();
  await chooseCsv(page, buffer);
  await page.getByRole("progressbar", { name: "Progress of the import" }).waitFor();
  const status = page.getByRole("status");
  await status.getByText("5,100 prospects would be created, 1 row would be skipped.").waitFor(soon);
  await page.getByLabel("The column “remark” is").waitFor();
  await page.getByRole("heading", { name: "1 row with a fault" }).waitFor();
  expect(dataOf(await team().admin.GET("/api/prospects")).total).toBe(4);
  await page.getByRole("button", { name: "Import 5,100 rows" }).click();
  await status.getByText("5,100 prospects were created, 1 row was skipped.").waitFor(soon);
  await page.getByRole("button", { name: "Undo the import" }).waitFor();
  expect(await violationsOf(page)).toEqual([]);

  await page.getByRole("link", { name: "Map" }).click();
  // The page shows the count of its last visit until the service answers, so the test waits for the new count.
  await expect.poll(() => mapOf(page), soon).toBe(5_103);
  const onMap = async () => [...(await clustersOn(page)), ...(await pinsOf(page)).map(() => 1)];
  await expect.poll(async () => (await onMap()).reduce((sum, count) => sum + count, 0), soon).toBe(5_103);
  expect((await onMap()).length).toBeLessThan(300);
  expect(faults).toEqual([]);
});

test("an admin sorts the newest 500 of many prospects, and reads that there are more", async () => {
  const { page } = admin();
  await page.goto("/prospects");
  const header = page.getByRole("columnheader", { name: "Name" });
  await header.getByRole("button").click();
  await page.getByText("Only the newest 500 are shown and sorted.").waitFor();
  expect(await header.getAttribute("aria-sort")).toBe("ascending");
  const { items } = dataOf(await team().admin.GET("/api/prospects", { params: { query: { pageSize: 500 } } }));
  const order = new Intl.Collator("en", { numeric: true });
  const sorted = items.map(({ name }) => name ?? "").sort(order.compare);
  const names = page.locator("tbody tr td:nth-child(2)");
  await expect.poll(() => names.allInnerTexts()).toEqual(sorted);
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByText("Page 1 of 103").waitFor();
  expect(await header.getAttribute("aria-sort")).toBe(null);
});

test("an admin sees that tiles have failed, and loads them again", async () => {
  const { page, context } = admin();
  await context.route("**/tiles/**", (route) => route.fulfill({ status: 503 }));
  await page.goto("/map?search=Ann");
  const button = page.getByRole("button", { name: "Load them again" });
  await button.waitFor(soon);
  await context.unroute("**/tiles/**");
  await button.click();
  await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann"));
  await button.waitFor({ state: "detached" });
});

test("an admin signs in again if the session has ended while the map moves", async () => {
  const { page, context } = admin();
  await context.clearCookies();
  await jumpTo(page, [-104.75, 39.95], 13);
  await page.getByLabel("Another user").waitFor();
  await chooseUser(page, team().admin.email);
  await mapOf(page);
  expect(new URL(page.url()).searchParams.get("search")).toBe("Ann");
});
