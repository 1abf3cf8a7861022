/** Tests the maps of the console in a real browser: areas, territories, many prospects, failed tiles and the end of a session. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Client } from "../harness/client.ts";
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

const GeoJson = z.object({
  type: z.literal("FeatureCollection"),
  features: z.array(
    z.object({
      type: z.literal("Feature"),
      properties: z.object({ name: z.string() }),
      geometry: z.object({ type: z.literal("Polygon"), coordinates: z.array(z.array(z.array(z.number()))) }),
    }),
  ),
});

/** The corners of an area that contains Ann and Bob. */
const around = [
  [39.77, -104.97],
  [39.77, -104.94],
  [39.74, -104.94],
  [39.74, -104.97],
] as const;

type Point = readonly [x: number, y: number];

/** Returns six points from each of the points to the next one. The sixth is the next point itself. */
const stepsOf = (points: readonly Point[]): Point[] =>
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

/** These tests use one company and one page. Each test continues where the previous one has ended. */
describe("an admin", () => {
  const clickOn = async (page: Page, [lat, lng]: readonly [lat: number, lng: number]) =>
    page.mouse.click(...(await positionOf(page, lng, lat)));

  test("draws around prospects, sees their number before they are assigned, and undoes it", async () => {
    const { page } = admin();
    await mapOf(page);
    await jumpTo(page, [-104.955, 39.755], 12);
    await page.getByRole("button", { name: "Select an area" }).click();
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

  test("draws around prospects with a pressed mouse button, and on a phone with a finger", async () => {
    const { page, context } = admin();
    const dialog = page.getByRole("dialog");
    const begin = async (): Promise<void> => {
      await mapOf(page);
      await jumpTo(page, [-104.955, 39.755], 12);
      await page.getByRole("button", { name: "Select an area" }).click();
    };
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

    await begin();
    const [first = expect.fail("no corner"), ...others] = await points();
    await page.mouse.move(...first);
    await page.mouse.down();
    for (const point of others) await page.mouse.move(...point, { steps: 6 });
    await page.mouse.up();
    await end();

    await page.setViewportSize(phone);
    await begin();
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

  test("selects prospects with a frame by the keyboard", async () => {
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

  test("draws a territory, moves its corners, and assigns the prospects inside", async () => {
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

  test("saves the territories as GeoJSON, and imports others", async () => {
    const { page } = admin();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download GeoJSON" }).click();
    const { features } = GeoJson.parse(JSON.parse(readFileSync(await (await saved).path(), "utf8")));
    const [north = expect.fail("the file is empty")] = features;
    expect(features).toHaveLength(1);
    expect(north.properties.name).toBe("North");
    const [ring = []] = north.geometry.coordinates;
    expect(ring).toHaveLength(5);
    expect(ring.at(-1)).toEqual(ring[0]);

    const south = ring.map(([lng = 0, lat = 0]) => [lng, lat - 0.1]);
    const others = [
      north,
      { ...north, properties: { name: "South" }, geometry: { type: "Polygon", coordinates: [south] } },
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

  test("clicks on a territory of the map, and shows only its prospects", async () => {
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

  test("imports a file of more than 4 MB, and the map has exact clusters", { timeout: 400_000 }, async () => {
    const { page, faults } = admin();
    // The import ignores this column. With it, the file is longer than 4 MB, but the import takes no longer.
    const remark = "This makes the file long. ".repeat(32);
    const late = { timeout: 240_000 };
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
    await status.getByText("5,100 prospects would be created, 1 row would be skipped.").waitFor(late);
    await page.getByLabel("The column “remark” is").waitFor();
    await page.getByRole("heading", { name: "1 row with a fault" }).waitFor();
    expect(dataOf(await team().admin.GET("/api/prospects")).total).toBe(4);
    await page.getByRole("button", { name: "Import 5,100 rows" }).click();
    await status.getByText("5,100 prospects were created, 1 row was skipped.").waitFor(late);
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

  test("sorts the newest 500 of many prospects, and reads that there are more", async () => {
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

  test("sees that tiles have failed, and loads them again", async () => {
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

  test("signs in again if the session has ended while the map moves", async () => {
    const { page, context } = admin();
    await context.clearCookies();
    await jumpTo(page, [-104.75, 39.95], 13);
    await page.getByLabel("Another user").waitFor();
    await chooseUser(page, team().admin.email);
    await mapOf(page);
    expect(new URL(page.url()).searchParams.get("search")).toBe("Ann");
  });
});
