/** Takes the pictures of the maps in docs/console.md. They show the streets of the demo, as a newcomer without internet sees them. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserForAll, drawnIds, isWriting, mapOf, picture, soon, visit } from "./visit.ts";

const browser = browserForAll(async () => undefined);

async function withDemoStreets(page: Page): Promise<void> {
  const config: object = await (await page.request.get("/config.json")).json();
  await page.route("**/config.json", (route) => route.fulfill({ json: { ...config, basemap: null } }));
  await page.reload();
  const hasStreets =
    "window.shownMap?.getLayer('streets') !== undefined && shownMap.queryRenderedFeatures({ layers: ['streets'] }).length > 0";
  await expect.poll(() => page.evaluate(hasStreets), soon).toBe(true);
}

test.runIf(isWriting)("a picture of the map with all prospects of the demo company", async () => {
  const { context, page } = await visit(browser(), "admin@acme.test", "/map");
  await withDemoStreets(page);
  const count = await mapOf(page);
  await expect.poll(async () => (await drawnIds(page)).length, soon).toBe(count);
  await picture(page, "map");
  await context.close();
});

test.runIf(isWriting)("a picture of the field mode at a door", async () => {
  // Playwright cannot replace answers to requests of a service worker, so this page has none.
  const options = { serviceWorkers: "block" } as const;
  const { context, page } = await visit(browser(), "rep@acme.test", "/field", { width: 390, height: 780 }, options);
  await page.getByRole("status").getByText("Up to date").waitFor();
  await withDemoStreets(page);
  await page.getByRole("button", { name: "Make the sheet larger" }).click();
  await page.getByRole("group", { name: "Status" }).getByRole("button", { name: "Not Home" }).waitFor();
  await page.getByRole("button", { name: "Next door", exact: true }).click();
  // The sheet with the door covers the lower part of the map. The visible part shows the next door and the doors around it.
  await page.evaluate("void shownMap.zoomTo(14, { around: shownMap.unproject([195, 234]), animate: false })");
  await picture(page, "field");
  await context.close();
});
