/** Tests in a real browser that ten tasks are possible with the keyboard only. */
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { mapStage } from "./map-stage.ts";
import { mapOf } from "./visit.ts";

const { idsOf, detailOf, notesOf, admin } = mapStage();

/** Maximum presses of Tab before the test gives up. No page has as many elements that can have the focus. */
const MOST_PRESSES = 120;

const isFocused = (wanted: Locator): Promise<boolean> =>
  wanted.evaluate((element) => element.matches(":focus")).catch(() => false);

/** Presses Tab until the element has the focus. Expects that the page then shows where the focus is. */
async function tabTo(page: Page, wanted: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  await wanted.waitFor();
  for (let i = 0; i < MOST_PRESSES && !(await isFocused(wanted)); i++) await page.keyboard.press(key);
  expect(await isFocused(wanted), `the keyboard reaches ${wanted}`).toBe(true);
  expect(await wanted.evaluate((element) => element.matches(":focus-visible"))).toBe(true);
}

async function press(page: Page, name: string | RegExp, role: "button" | "link" = "button"): Promise<void> {
  await tabTo(page, page.getByRole(role, { name, exact: typeof name === "string" }).first());
  await page.keyboard.press("Enter");
}

async function type(page: Page, label: string, text: string): Promise<void> {
  await tabTo(page, page.getByLabel(label, { exact: true }));
  await page.keyboard.type(text);
}

test("ten tasks are possible with the keyboard only", { timeout: 600_000 }, async () => {
  const { page } = admin();
  const [ann = expect.fail("no prospect")] = idsOf("Ann");
  const dialog = page.getByRole("dialog");
  const panel = page.getByRole("complementary", { name: "Prospect" });
  const opener = (name: string) => page.getByRole("button", { name, exact: true });
  await page.goto("/users");
  await page.getByRole("heading", { name: "Users" }).waitFor();

  // 1. Skip the navigation, and then use it.
  await page.keyboard.press("Tab");
  expect(await isFocused(page.getByRole("link", { name: "Skip to the content" }))).toBe(true);
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByRole("link", { name: "Prospects", exact: true }), "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByText("the newest first").waitFor();

  // 2. Search, with the key `/`.
  await page.keyboard.press("/");
  await page.keyboard.type("Ann");
  await page.getByText("1 prospect, the newest first").waitFor();

  // 3. Open the first row, and close it. The focus returns to the row.
  await opener("Ann").waitFor();
  await tabTo(page, opener("Ann"));
  await page.keyboard.press("Enter");
  await panel.getByRole("heading", { name: "Ann" }).waitFor();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  expect(await isFocused(opener("Ann"))).toBe(true);

  // 4. Set the status, and remove it.
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByLabel("Status", { exact: true }));
  for (const key of ["Enter", "S", "Enter"]) await page.keyboard.press(key);
  await expect.poll(async () => (await detailOf(ann)).currentStatus?.value).toBe("Sold");
  for (const key of ["Enter", "Home", "Enter"]) await page.keyboard.press(key);
  await expect.poll(async () => (await detailOf(ann)).currentStatus).toBe(null);

  // 5. Add a note.
  await type(page, "New note", "Ring twice");
  await press(page, "Add note");
  await expect.poll(() => notesOf(ann)).toEqual(["Ring twice"]);

  // 6. Make an appointment.
  await press(page, "New appointment");
  const begins = dialog.getByLabel("Begins at");
  await tabTo(page, begins);
  await page.keyboard.type("06152030");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type("1030AM");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  expect((await detailOf(ann)).appointments.map(({ title }) => title)).toEqual(["Visit"]);
  await page.keyboard.press("Escape");

  // 7. Filter by a status.
  await page.goto("/prospects");
  await press(page, "Filters");
  await press(page, "Sold");
  await page.getByText("No prospect matches").waitFor();
  await page.keyboard.press("Escape");
  await press(page, "Remove all filters");

  // 8. Change two of all prospects.
  await page.getByText("4 prospects, the newest first").waitFor();
  await tabTo(page, page.getByLabel("Select Ann"));
  await page.keyboard.press("Space");
  await tabTo(page, page.getByLabel("Select Bob"));
  await page.keyboard.press("Space");
  await tabTo(page, page.getByRole("button", { name: "Change the selected …" }), "Shift+Tab");
  await page.keyboard.press("Enter");
  await tabTo(page, dialog.getByLabel("Change", { exact: true }));
  await page.keyboard.type("Set");
  await tabTo(page, dialog.getByLabel("To", { exact: true }));
  await page.keyboard.type("Go");
  await press(page, "Set the status of 2 prospects to Go Back");
  await page.getByRole("status").getByText("2 prospects changed.").waitFor();

  // 9. Make a territory.
  await page.goto("/territories");
  await press(page, "Type the corners");
  await type(page, "Name", "North");
  await type(page, "Corners", "-105, 39.7");
  for (const corner of ["-104.9, 39.7", "-104.9, 39.8"]) {
    await page.keyboard.press("Enter");
    await page.keyboard.type(corner);
  }
  await press(page, "Save");
  await opener("North").waitFor();

  // 10. Select all prospects of the map, and give up.
  await page.goto("/map");
  await mapOf(page);
  await press(page, "Select an area");
  await expect.poll(() => isFocused(page.getByRole("application", { name: "Frame around prospects" }))).toBe(true);
  await page.keyboard.press("Enter");
  await dialog.getByRole("heading", { name: "Change many prospects" }).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await isFocused(page.getByRole("button", { name: "Select an area" }))).toBe(true);
});
