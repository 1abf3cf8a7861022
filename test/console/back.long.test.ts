/** Tests in a real browser that Back leads to the earlier state of a page. */
import { expect, test } from "vitest";
import { mapStage } from "./map-stage.ts";
import { jumpTo, mapOf, soon } from "./visit.ts";

const { admin } = mapStage();

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
