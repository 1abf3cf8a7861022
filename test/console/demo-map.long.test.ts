/** Tests in a real browser that the maps of the demo company show the prospects that the lists of the API contain. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { clientOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import {
  ascending,
  browserForAll,
  clickUntil,
  drawnIds,
  isWriting,
  jumpTo,
  mapOf,
  picture,
  soon,
  violationsOf,
  visit,
} from "./visit.ts";

const browser = browserForAll(async () => undefined);

/** Replaces the provider's streets by those of the demo, because the pictures of the guide show what a newcomer without internet sees. */
async function withDemoStreets(page: Page): Promise<void> {
  const config: object = await (await page.request.get("/config.json")).json();
  await page.route("**/config.json", (route) => route.fulfill({ json: { ...config, basemap: null } }));
  await page.reload();
  const hasStreets =
    "window.shownMap?.getLayer('streets') !== undefined && shownMap.queryRenderedFeatures({ layers: ['streets'] }).length > 0";
  await expect.poll(() => page.evaluate(hasStreets), soon).toBe(true);
}

async function placedIds(email: string, status?: string): Promise<number[]> {
  const query = { pageSize: 500, ...(status !== undefined && { status }) };
  const { items } = dataOf(await clientOf(email).GET("/api/prospects", { params: { query } }));
  return ascending(items.filter(({ lat, lng }) => lat !== null && lng !== null).map(({ id }) => id));
}

describe("the map of the demo company", () => {
  // All test files share the demo companies, so these tests only read them.
  const [admin, rep] = ["admin@acme.test", "rep@acme.test"] as const;

  test.for([admin, rep])("draws for %s exactly the prospects of the list that have a place", async (email) => {
    const { context, page, faults } = await visit(browser(), email, "/map");
    const all = await placedIds(email);
    expect(await mapOf(page)).toBe(all.length);
    await expect.poll(() => drawnIds(page), soon).toEqual(all);
    if (email === admin && isWriting) {
      await withDemoStreets(page);
      await expect.poll(() => drawnIds(page), soon).toEqual(all);
      await picture(page, "map");
    }
    await page.getByRole("button", { name: "Filters", exact: true }).click();
    await page.getByRole("button", { name: "Sold" }).click();
    await page.keyboard.press("Escape");
    const sold = await placedIds(email, "Sold");
    expect(sold.length).toBeLessThan(all.length);
    await expect.poll(() => drawnIds(page), soon).toEqual(sold);
    expect(await violationsOf(page)).toEqual([]);
    expect(faults).toEqual([]);
    await context.close();
  });

  test("the field mode has a pin for each place with doors of the rep, and the statuses of a door", async () => {
    // Playwright cannot replace answers to requests of a service worker, so this page has none.
    const options = { serviceWorkers: "block" } as const;
    const { context, page, faults } = await visit(browser(), rep, "/field", { width: 390, height: 780 }, options);
    await page.getByRole("status").getByText("Up to date").waitFor();
    if (isWriting) await withDemoStreets(page);
    const { items } = dataOf(await clientOf(rep).GET("/api/prospects", { params: { query: { pageSize: 500 } } }));
    const placed = items.flatMap(({ lat, lng, address }) =>
      lat === null || lng === null ? [] : [{ place: [lat, lng] as const, title: address?.address1 ?? "" }],
    );
    const [first = expect.fail("no door has a place")] = placed.filter(({ title }) => title !== "");
    await jumpTo(page, [first.place[1], first.place[0]], 17);
    await clickUntil(page, first.place, page.getByRole("heading", { level: 2, name: first.title }));
    const pins = "shownMap.getStyle().sources.doors.data.features.length";
    const places = new Set(placed.map(({ place }) => place.map((degrees) => degrees.toFixed(5)).join()));
    await expect.poll(() => page.evaluate(pins), soon).toBe(places.size);
    await page.getByRole("button", { name: "Make the sheet larger" }).click();
    await page.getByRole("group", { name: "Status" }).getByRole("button", { name: "Not Home" }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    if (isWriting) {
      // The sheet with the door covers the lower part of the map. The visible part shows the next door and the doors around it.
      await page.getByRole("button", { name: "Next door", exact: true }).click();
      await page.evaluate("void shownMap.zoomTo(14, { around: shownMap.unproject([195, 234]), animate: false })");
    }
    await picture(page, "field");
    expect(faults).toEqual([]);
    await context.close();
  });
});
