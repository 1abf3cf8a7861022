/** Tests the page of the map in a real browser: Back, legend, table and open prospect, and a map without a provider of streets. */
import type { Page, Request } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { dataOf } from "../harness/shapes.ts";
import { mapStage, small } from "./map-stage.ts";
import { drawnIds, jumpTo, mapOf, soon } from "./visit.ts";

const { idsOf, team, admin } = mapStage();

const layersOf = async (page: Page) =>
  z.array(z.string()).parse(await page.evaluate("shownMap.getStyle().layers.map(({ id }) => id)"));

test.each(["/map", "/field"])(
  "a deployment without a provider shows the outline on %s, asks no other origin, and says nothing",
  async (path) => {
    const { page, context } = admin();
    const config: object = await (await page.request.get("/config.json")).json();
    await context.route("**/config.json", (route) =>
      route.fulfill({ json: { ...config, basemap: null, streets: null } }),
    );
    const origins = new Set<string>();
    const listen = (request: Request) => origins.add(new URL(request.url()).origin);
    context.on("request", listen);
    await page.goto(path);
    await expect.poll(() => layersOf(page), soon).toContain("land");
    await page.locator("[data-ready='true'] canvas").waitFor();
    expect((await layersOf(page)).filter((id) => id === "streets" || id.startsWith("base "))).toEqual([]);
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
  const [width = 0, height = 0] = z.array(z.number()).parse(await page.evaluate(size));
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
