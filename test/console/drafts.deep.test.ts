/** Tests in a real browser that the console neither loses nor misfiles what users type. Each test continues on the same page. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import {
  browserForAll,
  chooseUser,
  closeMessages,
  jumpTo,
  positionOf,
  type Visit,
  violationsOf,
  visit,
} from "./visit.ts";

let team: Team;
let admin: Visit;
let ann: number;
let bob: number;
const browserOr = browserForAll(async (browser) => {
  team = await newTeam();
  const create = async (name: string) => dataOf(await team.admin.POST("/api/prospects", { body: { name } }), 201).id;
  [ann, bob] = [await create("Ann"), await create("Bob")];
  admin = await visit(browser, team.admin.email, "/prospects");
});

const notesOf = async (id: number) =>
  dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path: { id } } })).notes.map(({ body }) => body);

const panel = (page: Page, name?: string) =>
  page.getByRole("complementary", { name: "Prospect" }).getByRole("heading", { name: name ?? /./, level: 2 });
const noteOf = (page: Page) => page.getByLabel("New note");
const add = (page: Page) => page.getByRole("button", { name: "Add note" }).click();

async function open(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).click();
  await panel(page, name).waitFor();
}

test("a note belongs to the prospect for which it was typed, also while another note is sent", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
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

test("Escape, the close buttons, a reload and the end of the session keep what was typed", async ({ skip }) => {
  browserOr(skip);
  const { page, context } = admin;
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
  await chooseUser(page, team.admin.email);
  await panel(page, "Ann").waitFor();
  expect(await noteOf(page).inputValue()).toBe("Call back");
  expect(await notesOf(ann)).toEqual(["For Ann"]);
});

test("Escape ends the drawing of a territory, and the form then has its corners", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
  const dialog = page.getByRole("dialog");
  const corners = async () => (await dialog.getByLabel("Corners").inputValue()).split("\n").length;
  const draw = page.getByRole("button", { name: "Draw a territory" });
  await page.goto("/territories");
  await page.locator('[data-ready="true"] canvas').waitFor();
  await jumpTo(page, [-104.955, 39.755], 12);
  await draw.click();
  for (const [lng, lat] of [
    [-104.955, 39.745],
    [-104.94, 39.745],
  ] as const) {
    await page.mouse.click(...(await positionOf(page, lng, lat)));
  }
  await page.keyboard.press("Escape");
  expect(await corners()).toBe(2);
  await page.reload();
  await draw.click();
  expect(await corners()).toBe(2);
  await dialog.getByRole("button", { name: "Discard the draft" }).click();
  await page.keyboard.press("Escape");
});

test("a chosen file keeps its mapping, and itself up to 1 MB, until it is imported", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
  const doors = (rows: number, text: string): string =>
    `Kunde,Breite,Laenge,Text\n${`Cid,39.75,-104.95,${text}\n`.repeat(rows)}`;
  const choose = (text: string) =>
    page
      .getByLabel(/Drop a CSV file/)
      .setInputFiles({ name: "doors.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  const column = (header: string) => page.getByLabel(`The column “${header}” is`);
  const summary = page.getByRole("status");
  const check = page.getByRole("button", { name: "Check the file again" });
  await page.goto("/files");
  await choose(doors(1, "blue"));
  await summary.getByText("doors.csv: the service knows none of the columns. Choose what they are.").waitFor();
  await page.getByText("For example: 39.75", { exact: true }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await column("Kunde").selectOption("name");
  await column("Breite").selectOption("lat");
  await column("Laenge").selectOption("lng");
  await summary.getByText("1 prospect would be created.").waitFor();
  await page.reload();
  await check.click();
  await summary.getByText("1 prospect would be created.").waitFor();
  await page.getByText("For example: blue", { exact: true }).waitFor();
  expect(await column("Kunde").inputValue()).toBe("name");

  await choose(doors(1_000, "x".repeat(1_000)));
  await summary.getByText("1,000 prospects would be created.").waitFor();
  // A second choice for one column is refused. The user can then change it.
  await column("Text").selectOption("name");
  await page.getByRole("alert").getByText("name").waitFor();
  await closeMessages(page);
  await column("Text").selectOption("");
  await summary.getByText("1,000 prospects would be created.").waitFor();
  await page.reload();
  await page.getByText("doors.csv is not imported.").getByText("Choose this one again").waitFor();
  expect(await check.count()).toBe(0);
  await choose(doors(2, "red"));
  await summary.getByText("2 prospects would be created.").waitFor();
  await page.getByRole("button", { name: "Import 2 rows" }).click();
  await summary.getByText("2 prospects were created.").waitFor();
  await page.reload();
  await page.getByRole("region", { name: "Last imports" }).getByText("completed").waitFor();
  expect(await page.getByText("doors.csv").count()).toBe(0);
});

test("signing out asks what to do with drafts, and another user neither sees nor loses them", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
  const dialog = page.getByRole("dialog");
  const path = `/prospects?prospect=${ann}`;
  const signOut = async (answer: string): Promise<void> => {
    await closeMessages(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await dialog.getByRole("button", { name: answer }).click();
    await page.getByLabel("Another user").waitFor();
  };
  const signIn = async (email: string): Promise<string> => {
    await chooseUser(page, email);
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await page.goto(path);
    await panel(page, "Ann").waitFor();
    return noteOf(page).inputValue();
  };
  await page.goto(path);
  await panel(page, "Ann").waitFor();
  await signOut("Keep the drafts for me");
  expect(await signIn(team.viewer.email)).toBe("");
  await noteOf(page).fill("Vera's");
  await signOut("Discard the drafts");
  expect(await signIn(team.admin.email)).toBe("Call back");
  await signOut("Send the notes");
  expect((await notesOf(ann)).toSorted()).toEqual(["Call back", "For Ann"]);
  expect((await notesOf(bob)).toSorted()).toEqual(["Also for Bob", "For Bob"]);
  expect(await signIn(team.viewer.email)).toBe("");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Another user").waitFor();
  expect(await signIn(team.admin.email)).toBe("");
});
