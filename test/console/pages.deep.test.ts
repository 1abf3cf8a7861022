/**
 * Tests parts of pages in a real browser: imports of prospects and territories, a paused job, users with an ended invitation
 * or without a last name, and the code that verifies a signature.
 */
import { stripTypeScriptTypes } from "node:module";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, openLocalTable, type Team } from "../harness/team.ts";
import { browserForAll, type Visit, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
const browserOr = browserForAll(async (browser) => {
  team = await newTeam();
  admin = await visit(browser, team.admin.email, "/files");
});

test("the field for a file looks different while a file is over it, and takes the file that is dropped", async ({
  skip,
}) => {
  browserOr(skip);
  const { page } = admin;
  const field = page.locator("[data-over]");
  const look = (): Promise<string[]> =>
    page.evaluate(`(({ borderTopColor, backgroundColor }) => [borderTopColor, backgroundColor])(
      getComputedStyle(document.querySelector("[data-over]")))`);
  const dataTransfer = await page.evaluateHandle(`(() => {
    const data = new DataTransfer();
    data.items.add(new File(["name,lat,lng\\nAnn,39.75,-104.95\\n"], "doors.csv", { type: "text/csv" }));
    return data;
  })()`);
  await field.waitFor();
  const usual = await look();
  for (const end of ["dragleave", "drop"]) {
    await field.dispatchEvent("dragover", { dataTransfer });
    await expect.poll(look).toEqual(usual.map((colour) => expect.not.stringContaining(colour)));
    await field.dispatchEvent(end, { dataTransfer });
    await expect.poll(look).toEqual(usual);
  }
  await page.getByRole("status").getByText("1 prospect would be created.").waitFor();
});

test("a dry run says how many faulty values would be left empty", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
  const buffer = Buffer.from("Full Name,Latitude,Longitude,Sales Rep\nAnn,39.75,-104.95,No One\n");
  await page.getByLabel(/Drop a CSV file/).setInputFiles({ name: "doors.csv", mimeType: "text/csv", buffer });
  await page.getByRole("status").getByText("1 faulty value would be left empty").waitFor();
});

test("territories in another coordinate system are refused by its name", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
  const crs = { type: "name", properties: { name: "EPSG:3857" } };
  const coordinates = [
    [
      [0, 0],
      [1, 0],
      [1, 1],
      [0, 0],
    ],
  ];
  const features = [{ type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates } }];
  const buffer = Buffer.from(JSON.stringify({ type: "FeatureCollection", crs, features }));
  await page.goto("/territories");
  await page.getByLabel("GeoJSON file").setInputFiles({ name: "a.json", mimeType: "application/json", buffer });
  await page.getByRole("alert").getByText("EPSG:3857").waitFor();
  expect(dataOf(await team.admin.GET("/api/territories"))).toEqual([]);
});

test("the list of imports says who began each import", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
  dataOf(await team.importer.POST("/api/prospects/imports", { body: {} }), 201);
  dataOf(await team.admin.POST("/api/prospects/imports", { body: {} }), 201);
  await page.goto("/files");
  const users = page.getByRole("region", { name: "Last imports" }).locator("tbody tr td:nth-child(2)");
  await expect.poll(() => users.allInnerTexts()).toEqual(["Ada Admin", "Iris Rep"]);
});

test("a paused job is read again until it has ended, in its message and in the list of jobs", async ({ skip }) => {
  browserOr(skip);
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
  await dialog.getByLabel("Change").selectOption({ label: "Set the status" });
  await dialog.getByRole("combobox", { name: "To", exact: true }).selectOption({ label: "Go Back" });
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
  // A newly loaded page shows no message about the job, so here only the list of jobs requests it.
  await page.goto("/files");
  const list = page.getByRole("region", { name: "Jobs" });
  await list.getByText("The job is paused.").waitFor();
  await page.unroute(all);
  await list.getByText("1 prospect changed.").waitFor();
});

test("an invited user can be changed, and the list says that the invitation has ended", async ({ skip }) => {
  browserOr(skip);
  const { page } = admin;
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
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await find()).toMatchObject({ permissions: ["canViewAllProspects"], invitation: "pending" });

  const { company } = dataOf(await team.admin.GET("/api/me"));
  const table = await openLocalTable();
  const key = keys.user(company.id, id);
  await table.write({ put: { ...key, ...present(await table.get(key)), invitedUntil: Date.now() - 1 } });
  expect((await find()).invitation).toBe("expired");
  await page.reload();
  await row.getByText("Invitation ended").waitFor();
});

const Example = z.object({
  isGenuine: z.custom<(body: Buffer, signature: string, secret: string) => boolean>(
    (value) => typeof value === "function",
  ),
});

test("the page of a webhook shows warnings and sends a sample of a chosen event, and its code verifies the signature", async ({
  skip,
}) => {
  browserOr(skip);
  const receiver = await startReceiver((_, response) => response.writeHead(204).end());
  onTestFinished(receiver.close);
  const body = { name: "CRM", url: receiver.url, registrations: [{ event: "prospect.create" }] };
  const { id, secretKey } = dataOf(await team.admin.POST("/api/webhooks", { body }), 201);
  const { page } = admin;
  await page.goto(`/webhooks/${id}`);
  await page.getByText("Did you mean prospect.created?").waitFor();
  await page.getByLabel("Event to test").selectOption("note.created");
  await page.getByRole("button", { name: "Send a test event" }).click();
  await receiver.until(1);
  const { headers, body: sent, event } = present(receiver.receipts[0]);
  expect(event).toMatchObject({ event: "note.created", test: true });
  const help = page.locator("section").filter({ has: page.getByRole("heading", { name: "Check the signature" }) });
  const [name = ""] = await help.locator("p code").allInnerTexts();
  const signature = String(headers[name.toLowerCase()]);
  const code = stripTypeScriptTypes(await help.locator("pre").innerText());
  const { isGenuine } = Example.parse(
    await import(`data:text/javascript,${encodeURIComponent(`${code}\nexport { isGenuine };`)}`),
  );
  expect(isGenuine(Buffer.from(sent), signature, secretKey)).toBe(true);
  expect(isGenuine(Buffer.from(`${sent} `), signature, secretKey)).toBe(false);
  expect(isGenuine(Buffer.from(sent), signature.slice(2), secretKey)).toBe(false);
  expect(isGenuine(Buffer.from(sent), signature, `${secretKey}x`)).toBe(false);
});
