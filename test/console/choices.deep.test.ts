/** Tests in a real browser that users change nothing by accident, and the shortcuts of one key. Each test continues on the same page. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { dataOf } from "../harness/shapes.ts";
import { mapStage } from "./map-stage.ts";
import { closeMessages, violationsOf } from "./visit.ts";

const { idsOf, detailOf, team, admin } = mapStage();
const isFocused = (page: Page, label: string) =>
  page.getByLabel(label).evaluate((element) => element.matches(":focus"));

test("a list of statuses saves only on choice, keeps the focus, and undoes by a second change", async () => {
  const { page } = admin();
  const [ann = expect.fail("no prospect")] = idsOf("Ann");
  const [first = expect.fail("no status")] = dataOf(await team().admin.GET("/api/statuses"));
  const changes: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "PATCH" || request.url().endsWith("/operations")) changes.push(request.method());
  });
  await page.goto(`/prospects?prospect=${ann}`);
  const status = page.getByLabel("Status", { exact: true });
  await status.focus();
  for (const key of ["ArrowDown", "ArrowDown", "Escape"]) await page.keyboard.press(key);
  await status.waitFor();
  expect(changes).toEqual([]);
  for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  expect(await violationsOf(page)).toEqual([]);
  await page.keyboard.press("Enter");
  expect(await status.innerText()).toContain(first.value);
  expect(await isFocused(page, "Status")).toBe(true);
  await expect.poll(async () => (await detailOf(ann)).currentStatus?.id).toBe(first.id);
  await page.getByRole("status").getByRole("button", { name: "Undo" }).click();
  await expect.poll(async () => (await detailOf(ann)).currentStatus).toBe(null);
  expect(await isFocused(page, "Status")).toBe(true);
  // The undo sends two POST requests. The first one changes nothing: it only asks for the version of the prospect.
  expect(changes).toEqual(["PATCH", "POST", "POST"]);
  const history = page.locator("section").filter({ has: page.getByRole("heading", { name: "History" }) });
  await expect.poll(() => history.getByRole("listitem").count()).toBe(2);
  const assignee = page.getByLabel("Assigned to", { exact: true });
  await assignee.click();
  await page.getByRole("option", { name: "Ravi Rep" }).click();
  await expect.poll(async () => (await detailOf(ann)).assignedTo?.firstName).toBe("Ravi");
  expect(await isFocused(page, "Assigned to")).toBe(true);
  await closeMessages(page);
});

test("an undo keeps what somebody else has changed meanwhile", async () => {
  const { page } = admin();
  const [ann = expect.fail("no prospect")] = idsOf("Ann");
  const statuses = dataOf(await team().admin.GET("/api/statuses"));
  const [, second = expect.fail("no status"), third = expect.fail("no status")] = statuses;
  const patch = async (body: { name?: string; currentStatusId?: number | null }) =>
    dataOf(await team().owner.PATCH("/api/prospects/{id}", { params: { path: { id: ann } }, body }));
  const choose = async (name: string): Promise<void> => {
    await page.getByLabel("Status", { exact: true }).click();
    await page.getByRole("option", { name }).click();
    await page.getByRole("status").getByText(`Status: ${name}.`).waitFor();
  };
  const undo = page.getByRole("status").getByRole("button", { name: "Undo" });
  const shown = () => page.getByLabel("Status", { exact: true }).innerText();
  await page.goto(`/prospects?prospect=${ann}`);
  await choose(second.value);
  await patch({ name: "Annie" });
  await undo.click();
  await expect.poll(() => detailOf(ann)).toMatchObject({ currentStatus: null, name: "Annie" });
  await choose(second.value);
  await patch({ currentStatusId: third.id });
  await undo.click();
  await page.getByRole("alert").getByText("Somebody has changed this again, so it was not undone.").waitFor();
  expect((await detailOf(ann)).currentStatus?.id).toBe(third.id);
  await expect.poll(shown).toContain(third.value);
  await patch({ name: "Ann", currentStatusId: null });
  await page.reload();
  await expect.poll(shown).toContain("No status");
});

test("a choice that the service refuses disappears, and an error says why", async () => {
  const { page } = admin();
  // Only a PATCH is answered with 503. If the page also reads the prospect, this GET succeeds.
  const path = "**/api/prospects/*";
  await page.route(path, (route) =>
    route.request().method() === "PATCH" ? route.fulfill({ status: 503 }) : route.fallback(),
  );
  const status = page.getByLabel("Status", { exact: true });
  await status.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("503").waitFor();
  await expect.poll(() => status.innerText()).toContain("No status");
  await page.unroute(path);
  await closeMessages(page);
});

test("a bulk change has no preset, its button names it, and a dangerous one needs the number", async () => {
  const { page } = admin();
  await page.goto("/prospects");
  await page.getByRole("button", { name: "Change all 4 prospects …" }).click();
  const dialog = page.getByRole("dialog");
  const submit = dialog.locator("footer button");
  const [change, to] = [dialog.getByLabel("Change", { exact: true }), dialog.getByLabel("To", { exact: true })];
  expect(await submit.isDisabled()).toBe(true);
  await change.selectOption({ label: "Assign to" });
  expect(await submit.isDisabled()).toBe(true);
  await to.selectOption({ label: "Rita Rep" });
  await dialog.getByRole("button", { name: "Assign 4 prospects to Rita Rep" }).waitFor();
  await expect.poll(() => submit.isEnabled()).toBe(true);
  await to.selectOption({ label: "Nobody" });
  await dialog.getByRole("button", { name: "Assign 4 prospects to nobody" }).waitFor();
  const number = dialog.getByLabel("Type 4 to confirm");
  await number.fill("3");
  expect(await submit.isDisabled()).toBe(true);
  await number.fill("4");
  expect(await submit.isDisabled()).toBe(false);
  await page.route("**/api/prospects/bulk", (route) => route.fulfill({ json: { count: 1_501 } }), { times: 1 });
  await change.selectOption({ label: "Set the status" });
  await to.selectOption({ label: "Sold" });
  await dialog.getByRole("button", { name: "Set the status of 1,501 prospects to Sold" }).waitFor();
  expect(await submit.isDisabled()).toBe(true);
  await dialog.getByLabel("Type 1501 to confirm").fill("1,501");
  expect(await submit.isDisabled()).toBe(false);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

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
