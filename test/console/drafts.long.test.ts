/** Tests drafts of territories and files in a real browser, and what a sign-out does with them. Each test continues on the same page. */
import { expect, test } from "vitest";
import { mapStage, noteOf, open, panel } from "./map-stage.ts";
import { chooseCsv, chooseUser, closeMessages, jumpTo, positionOf, violationsOf } from "./visit.ts";

const { notesOf, team, admin, idsOf } = mapStage("/prospects");

test("Escape ends the drawing of a territory, and the form then has its corners", async () => {
  const { page } = admin();
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

test("a chosen file keeps its mapping, and itself up to 1 MB, until it is imported", async () => {
  const { page } = admin();
  const doors = (rows: number, text: string): string =>
    `Kunde,Breite,Laenge,Text\n${`Cid,39.75,-104.95,${text}\n`.repeat(rows)}`;
  const choose = (text: string) => chooseCsv(page, text);
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
  // The service refuses a mapping of two columns to `name`. The user can then change the mapping.
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

test("signing out asks what to do with drafts, and another user neither sees nor loses them", async () => {
  const { page } = admin();
  const dialog = page.getByRole("dialog");
  const [ann = 0, bob = 0] = idsOf("Ann", "Bob");
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
  await page.goto("/prospects");
  for (const name of ["Bob", "Ann"]) {
    await open(page, name);
    await noteOf(page).fill(`For ${name}`);
  }
  await signOut("Keep the drafts for me");
  expect(await signIn(team().viewer.email)).toBe("");
  await noteOf(page).fill("Vera's");
  await signOut("Discard the drafts");
  expect(await signIn(team().admin.email)).toBe("For Ann");
  await signOut("Send the notes");
  expect([await notesOf(ann), await notesOf(bob)]).toEqual([["For Ann"], ["For Bob"]]);
  expect(await signIn(team().viewer.email)).toBe("");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Another user").waitFor();
  expect(await signIn(team().admin.email)).toBe("");
});
