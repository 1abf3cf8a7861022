/** Tests in a real browser the keyboard shortcuts that consist of one character. */
import { expect, test } from "vitest";
import { mapStage } from "./map-stage.ts";

const { admin } = mapStage();

test("j and k move through the rows and the open panels, / searches, ? shows the keys, and a switch ends them", async () => {
  const { page } = admin();
  const focused = (): Promise<unknown> =>
    page.evaluate("document.activeElement.innerText ?? document.activeElement.type");
  const panel = page.getByRole("complementary", { name: "Prospect" });
  await page.goto("/prospects");
  const names = page.locator("tbody tr .open");
  await names.first().waitFor();
  const [first = "", second = "", third = ""] = await names.allInnerTexts();
  const press = async (...keys: readonly string[]): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press("j", "j", "j", "k");
  expect(await focused()).toBe(second);
  await press("Enter");
  await panel.getByRole("heading", { name: second }).waitFor();
  await press("j");
  await panel.getByRole("heading", { name: third }).waitFor();
  await press("k", "k");
  await panel.getByRole("heading", { name: first }).waitFor();
  await press("Escape", "/");
  expect(await focused()).toBe("");
  await press("j", "?");
  const search = page.getByRole("searchbox", { name: "Search prospects" });
  expect(await search.inputValue()).toBe("j?");
  await search.fill("");
  await page.getByRole("button", { name: "Keys" }).focus();
  await press("?");
  const dialog = page.getByRole("dialog", { name: "Keys" });
  await dialog.getByLabel("Use the keys of one character").uncheck();
  await press("Escape");
  await dialog.waitFor({ state: "detached" });
  await press("/");
  expect(await search.evaluate((element) => element.matches(":focus"))).toBe(false);
  await page.evaluate("localStorage.removeItem('canvassing-keys')");
});
