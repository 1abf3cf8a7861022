/** Tests parts of pages in a real browser: the list of imports, a paused job, and users with an ended invitation. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, openLocalTable, type Team } from "../harness/team.ts";
import { browserForAll, chooseChange, phone, type Visit, violationsOf, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
browserForAll(async (browser) => {
  team = await newTeam();
  admin = await visit(browser, team.admin.email, "/files");
});

test("the list of imports says who began each import", async () => {
  const { page } = admin;
  dataOf(await team.importer.POST("/api/prospects/imports", { body: {} }), 201);
  dataOf(await team.admin.POST("/api/prospects/imports", { body: {} }), 201);
  await page.goto("/files");
  const users = page.getByRole("region", { name: "Last imports" }).locator("tbody tr td:nth-child(2)");
  await expect.poll(() => users.allInnerTexts()).toEqual(["Ada Admin", "Iris Rep"]);
});

test("a paused job is read again until it has ended, in its message and in the list of jobs", async () => {
  const { page } = admin;
  dataOf(await team.admin.POST("/api/prospects", { body: { name: "Ann" } }), 201);
  // This job ends before an admin could pause it. The test therefore changes the state of the job in the answers that the browser receives.
  const Paused = z.looseObject({ state: z.string() });
  const Jobs = z.object({ items: z.array(Paused) });
  const one = /\/api\/jobs\/\d+$/;
  await page.route(one, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...Paused.parse(await response.json()), state: "paused" } });
  });
  await page.goto("/prospects?search=Ann");
  await page.getByRole("button", { name: "Change all 1 prospect …" }).click();
  const dialog = page.getByRole("dialog");
  await chooseChange(page, "Set the status", "Go Back");
  await dialog.getByRole("button", { name: "Set the status of 1 prospect to Go Back" }).click();
  const message = page.getByRole("status");
  await message.getByText("The job is paused.").waitFor();
  await page.unroute(one);
  await message.getByText("1 prospect changed.").waitFor();

  const all = "**/api/jobs?*";
  await page.route(all, async (route) => {
    const response = await route.fetch();
    const { items } = Jobs.parse(await response.json());
    await route.fulfill({ response, json: { items: items.map((job) => ({ ...job, state: "paused" })) } });
  });
  // A newly loaded page shows no message about the job, so here only the list of jobs can show the state of the job.
  await page.goto("/files");
  const list = page.getByRole("region", { name: "Jobs" });
  await list.getByText("The job is paused.").waitFor();
  await page.unroute(all);
  await list.getByText("1 prospect changed.").waitFor();
});

test("an invited user can be changed, on a phone too, and the list says that the invitation has ended", async () => {
  const { page } = admin;
  await page.setViewportSize(phone);
  await page.goto("/users");
  await page.getByRole("button", { name: "Invite a user" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("First name").fill("Cher");
  await dialog.getByLabel("Last name").fill("Bono");
  const email = team.admin.email.replace("admin@", "cher@");
  await dialog.getByLabel("E-mail").fill(email);
  await dialog.getByRole("button", { name: "Send the invitation" }).click();
  await dialog.waitFor({ state: "detached" });
  const row = page.getByRole("region", { name: "Users" }).getByRole("row").filter({ hasText: email });
  await row.getByText("Invited").waitFor();
  const find = async () => present(dataOf(await team.admin.GET("/api/users")).find((user) => user.email === email));
  const { id } = await find();
  await row.getByRole("button", { name: "Edit Cher Bono", exact: true }).click();
  await dialog.getByLabel("Sees all prospects").check();
  expect(await violationsOf(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const permissions = ["canViewAllProspects"];
  expect(await find()).toMatchObject({ role: "sales", permissions, isActive: true, invitation: "pending" });

  const { company } = dataOf(await team.admin.GET("/api/me"));
  const table = await openLocalTable();
  const key = keys.user(company.id, id);
  await table.write({ put: { ...key, ...present(await table.get(key)), invitedUntil: Date.now() - 1 } });
  expect((await find()).invitation).toBe("expired");
  await page.reload();
  await row.getByText("Invitation ended").waitFor();
});
