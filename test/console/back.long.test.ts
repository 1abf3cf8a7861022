/** Tests in a real browser that a drawn area stays while its dialog is open, and that Back leads to the earlier state of a page. */
import { expect, test } from "vitest";
import { mapStage } from "./map-stage.ts";
import { around } from "./shapes.ts";
import { jumpTo, mapOf, positionOf, soon } from "./visit.ts";

const { browserOr, admin } = mapStage();

test("an area stays on the map while the dialog is open", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin();
  await page.goto("/");
  await mapOf(page);
  await jumpTo(page, [-104.955, 39.755], 12);
  await page.getByRole("button", { name: "Select an area" }).click();
  const [first, ...others] = await Promise.all(around.map(([lat, lng]) => positionOf(page, lng, lat)));
  await page.mouse.move(...(first ?? expect.fail("no corner")));
  await page.mouse.down();
  for (const point of others) await page.mouse.move(...point, { steps: 6 });
  await page.mouse.up();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  const areas = (): Promise<number> =>
    page.evaluate("shownMap.getStyle().sources['selected-area']?.data.features.length ?? 0");
  expect(await areas()).toBe(1);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await areas()).toBe(0);
});

test("Back closes a panel and turns a page back, and the URL has the part of the map", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin();
  const at = () => new URL(page.url()).searchParams.get("at");
  const camera = (): Promise<string> =>
    page.evaluate("[...shownMap.getCenter().toArray(), shownMap.getZoom()].map((x) => x.toFixed(2)).join()");
  const panel = page.getByRole("complementary", { name: "Prospect" });
  await page.goto("/?table=1");
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
