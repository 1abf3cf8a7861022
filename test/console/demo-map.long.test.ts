/** Tests in a real browser that the map of the demo company shows the prospects that the lists of the API contain. */
import { describe, expect, test } from "vitest";
import { clientOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { ascending, browserForAll, drawnIds, isWriting, mapOf, picture, soon, violationsOf, visit } from "./visit.ts";

const browser = browserForAll(async () => undefined);

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
      // The picture has the streets of the demo, as a newcomer without internet sees them.
      const config: object = await (await page.request.get("/config.json")).json();
      await page.route("**/config.json", (route) => route.fulfill({ json: { ...config, basemap: null } }));
      await page.reload();
      await expect.poll(() => drawnIds(page), soon).toEqual(all);
      const hasStreets = "shownMap.loaded() && shownMap.queryRenderedFeatures({ layers: ['streets'] }).length > 0";
      await expect.poll(() => page.evaluate(hasStreets), soon).toBe(true);
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
});
