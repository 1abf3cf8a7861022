/** Tests in a real browser that the console neither loses nor misfiles what users type. Each test continues on the same page. */
import { expect, test } from "vitest";
import { add, mapStage, noteOf, open, panel } from "./map-stage.ts";
import { chooseUser } from "./visit.ts";

const { notesOf, team, admin, idsOf } = mapStage("/prospects");

test("a note belongs to the prospect for which it was typed, also while another note is sent", async () => {
  const { page } = admin();
  const [ann = 0, bob = 0] = idsOf("Ann", "Bob");
  for (const name of ["Bob", "Ann"]) await open(page, name);
  await noteOf(page).fill("For Ann");
  await open(page, "Bob");
  await expect.poll(() => noteOf(page).inputValue()).toBe("");
  await noteOf(page).fill("For Bob");
  await add(page);
  await expect.poll(() => notesOf(bob)).toEqual(["For Bob"]);
  await expect.poll(() => noteOf(page).inputValue()).toBe("");

  await open(page, "Ann");
  await expect.poll(() => noteOf(page).inputValue()).toBe("For Ann");
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(`**/api/prospects/${ann}/notes`, (route) => promise.then(() => route.continue()), { times: 1 });
  const answered = page.waitForResponse((response) => response.url().endsWith(`/${ann}/notes`));
  await add(page);
  await open(page, "Bob");
  await noteOf(page).fill("Also for Bob");
  resolve();
  await answered;
  await open(page, "Ann");
  await page.getByText("For Ann").waitFor();
  await expect.poll(() => noteOf(page).inputValue()).toBe("");
  await open(page, "Bob");
  expect(await noteOf(page).inputValue()).toBe("Also for Bob");
  expect(await notesOf(ann)).toEqual(["For Ann"]);
});

test("Escape, the close buttons, a reload and the end of the session keep what was typed", async () => {
  const { page, context } = admin();
  const [ann = 0] = idsOf("Ann");
  const dialog = page.getByRole("dialog");
  const title = dialog.getByLabel("Title");
  const newAppointment = page.getByRole("button", { name: "New appointment" });
  await open(page, "Ann");
  await noteOf(page).fill("Call back");
  await newAppointment.click();
  await title.fill("Roof check");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await panel(page, "Ann").count()).toBe(1);
  expect(await noteOf(page).inputValue()).toBe("Call back");
  await newAppointment.click();
  expect(await title.inputValue()).toBe("Roof check");
  await dialog.getByRole("button", { name: "Discard the draft" }).click();
  expect(await title.inputValue()).toBe("Visit");
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await page.getByRole("button", { name: "Close the prospect" }).click();
  await open(page, "Ann");
  expect(await noteOf(page).inputValue()).toBe("Call back");
  await page.reload();
  await expect.poll(() => noteOf(page).inputValue()).toBe("Call back");
  await context.clearCookies();
  await add(page);
  await page.getByLabel("Another user").waitFor();
  await chooseUser(page, team().admin.email);
  await panel(page, "Ann").waitFor();
  expect(await noteOf(page).inputValue()).toBe("Call back");
  expect(await notesOf(ann)).toEqual(["For Ann"]);
});
