/**
 * Tests in a real browser that the map and the table beside it show the prospects of the API, that a click opens a prospect, and that the
 * colours of a map can change at any time.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { faultsOf } from "../harness/browser.ts";
import { rectangle } from "../harness/rings.ts";
import { dataOf } from "../harness/shapes.ts";
import { mapStage, places, small } from "./map-stage.ts";
import { clickUntil, drawnIds, jumpTo, mapOf, phone, pinsOf, soon, territoriesOn, violationsOf } from "./visit.ts";

const { idsOf, team, admin } = mapStage();

/** These tests use one company and one page. Each test continues where the previous one has ended. */
describe("an admin", () => {
  test("opens a prospect by a click on its pin, and the pin gets the colour of the new status", async () => {
    const { page } = admin();
    await mapOf(page);
    await page.getByText("3 prospects on the map, 1 without a place.").waitFor();
    await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob", "Cid"));
    // The map becomes smaller while the page loads, and again when the window becomes smaller. It must show all prospects each time.
    const height = () => page.evaluate<number>("shownMap.getCanvas().clientHeight");
    const usual = await height();
    await page.setViewportSize({ ...small, height: small.height + 300 });
    await page.reload();
    await mapOf(page);
    await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob", "Cid"));
    expect(await height()).toBeGreaterThan(usual);
    await page.setViewportSize(small);
    // Meanwhile, the page may show a line about the streets, which makes the map smaller.
    await expect.poll(height, soon).toBeLessThanOrEqual(usual);
    await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob", "Cid"));
    const drawer = page.getByRole("complementary", { name: "Prospect" });
    await clickUntil(page, places.Ann, drawer.getByRole("heading", { name: "Ann" }));
    const statuses = dataOf(await team().admin.GET("/api/statuses"));
    const { value, color } = statuses.find((one) => one.isActive) ?? expect.fail("there is no status");
    await drawer.getByLabel("Status", { exact: true }).click();
    await drawer.getByRole("option", { name: value, exact: true }).click();
    await expect
      .poll(async () => (await pinsOf(page)).filter((pin) => pin.color === color).map(({ id }) => id), soon)
      .toEqual(idsOf("Ann"));
    // The map shows the old tiles until the new ones are loaded, so the test waits for the new ones.
    await expect.poll(() => drawnIds(page), soon).toEqual(idsOf("Ann", "Bob", "Cid"));
    await drawer.getByRole("button", { name: "Close the prospect" }).click();
  });

  test("reaches each prospect in the table beside the map, with the keyboard and on a phone too", async () => {
    const { page } = admin();
    const toggle = page.getByRole("button", { name: "Table", exact: true });
    await toggle.focus();
    await page.keyboard.press("Enter");
    const table = page.getByRole("region", { name: "Prospects of the map" });
    const names = async () => (await table.locator("tbody tr td:first-child").allInnerTexts()).sort();
    await expect.poll(names, soon).toEqual(["Ann", "Bob", "Cid"]);
    await jumpTo(page, [-104.95, 39.75], 12);
    await expect.poll(names, soon).toEqual(["Ann", "Bob"]);
    expect(await violationsOf(page)).toEqual([]);
    await table.getByLabel("Only the visible part of the map").focus();
    await page.keyboard.press("Space");
    await expect.poll(names, soon).toEqual(["Ann", "Bob", "Cid", "Dan"]);
    await page.setViewportSize(phone);
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await table.getByRole("button", { name: "Dan" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Prospect" }).getByRole("heading", { name: "Dan" }).waitFor();
    await page.keyboard.press("Escape");
    await page.setViewportSize(small);
    await toggle.click();
    await table.waitFor({ state: "detached" });
  });
});

test("a map whose colours change as soon as it is ready leaves no error, and the new map shows the territories", async () => {
  const { context } = admin();
  const polygon = rectangle(-104.97, 39.74, -104.94, 39.77);
  const { id } = dataOf(await team().admin.POST("/api/territories", { body: { name: "Late", polygon } }), 201);
  const page = await context.newPage();
  onTestFinished(() => page.close());
  const faults = faultsOf(page);
  await page.addInitScript(`
    const lists = {};
    const real = matchMedia.bind(window);
    window.matchMedia = (query) => (lists[query] ??= real(query));
    addEventListener("mapready", () => {
      localStorage.setItem("canvassing-theme", "dark");
      lists["(prefers-color-scheme: dark)"].dispatchEvent(new Event("change"));
    }, { once: true });`);
  await page.goto("/territories");
  await page.locator('[data-scheme="dark"][data-ready="true"]').waitFor();
  await expect.poll(() => territoriesOn(page), soon).toContain(id);
  expect(faults).toEqual([]);
});
