/** Tests which requests the console sends. A user who repeats a change whose answer was lost makes it only once. */
import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, chooseCsv, closeMessages, type Visit, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
let prospect: number;
browserForAll(async (browser) => {
  team = await newTeam();
  prospect = dataOf(await team.admin.POST("/api/prospects", { body: { name: "Ann" } }), 201).id;
  admin = await visit(browser, team.admin.email, `/prospects?prospect=${prospect}`);
});

/** Lets the next request to the path reach the service, but drops the service's answer, so that the page gets a network error. */
async function loseAnswer(page: Page, path: string): Promise<void> {
  const lose = async (route: Route): Promise<void> => {
    await route.fetch();
    await route.abort();
  };
  await page.route((url) => url.pathname === path, lose, { times: 1 });
}

const AWAY = "The service did not answer.";

test("a note whose answer was lost is added once, and the same text later is another note", async () => {
  const { page } = admin;
  const path = `/api/prospects/${prospect}/notes`;
  const notes = async (): Promise<string[]> => {
    const detail = dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path: { id: prospect } } }));
    return detail.notes.map(({ body }) => body);
  };
  const text = page.getByLabel("New note");
  const add = page.getByRole("button", { name: "Add note" });
  await loseAnswer(page, path);
  await text.fill("Left a card.");
  await add.click();
  await page.getByRole("alert").getByText(AWAY).waitFor();
  expect(await notes()).toEqual(["Left a card."]);

  const problem = { type: "urn:problem:request_in_progress", code: "request_in_progress", status: 409, detail: "" };
  await page.route(`**${path}`, (route) => route.fulfill({ status: 409, json: problem }), { times: 1 });
  await add.click();
  await page.getByRole("alert").getByText("still executing your first attempt").waitFor();
  await add.click();
  await expect.poll(() => text.inputValue()).toBe("");
  expect(await notes()).toEqual(["Left a card."]);

  await text.fill("Left a card.");
  await add.click();
  await expect.poll(() => text.inputValue()).toBe("");
  expect(await notes()).toEqual(["Left a card.", "Left a card."]);
  await closeMessages(page);
});

/** This test suffices for all dialogs that create a record, because all of them send their requests by the same client. */
test("a webhook whose answer was lost is created once", async () => {
  const { page } = admin;
  const count = async (): Promise<number> => dataOf(await team.admin.GET("/api/webhooks")).length;
  await page.goto("/webhooks");
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("Once");
  await dialog.getByLabel("URL", { exact: true }).fill("https://example.com/once");
  await loseAnswer(page, "/api/webhooks");
  const send = dialog.getByRole("button", { name: "Create the webhook", exact: true });
  await send.click();
  await dialog.getByRole("alert").getByText(AWAY).waitFor();
  expect(await count()).toBe(1);
  await send.click();
  await send.waitFor({ state: "detached" });
  expect(await count()).toBe(1);
});

test("a file whose answer was lost is imported once, and its dry runs have no key", async () => {
  const { page } = admin;
  await page.goto("/files");
  const keys: (string | undefined)[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST") keys.push(request.headers()["idempotency-key"]);
  });
  const choose = () => chooseCsv(page, "name,lat,lng\nBob,39.75,-104.95\nCid,39.76,-104.95\n");
  const start = page.getByRole("button", { name: "Import 2 rows" });
  await choose();
  await start.waitFor();
  await loseAnswer(page, "/api/prospects/import");
  await start.click();
  await page.getByRole("alert").getByText(AWAY).waitFor();
  await choose();
  await start.click();
  await page.getByRole("status").getByText("2 prospects were created.").waitFor();
  expect(dataOf(await team.admin.GET("/api/prospects")).total).toBe(3);
  const [firstCheck, first, secondCheck, second] = keys;
  expect([firstCheck, secondCheck]).toEqual([undefined, undefined]);
  expect(first).toBeDefined();
  expect(second).toBe(first);
});

test("the list of jobs needs no request for each job, and shows jobs that are undone", async () => {
  const { page } = admin;
  await page.getByRole("button", { name: "Undo the import" }).click();
  await page.getByRole("status").getByText("2 prospects restored.").waitFor();
  const rows = page.getByRole("region", { name: "Jobs" }).locator("tbody tr");
  // The console loads the list again when a job begins and when it ends, so the list shows the end without a reload of the page.
  await rows.getByText("2 prospects restored.").waitFor();
  const body = { ids: [prospect], action: { set: { assignedToUserId: null } }, expectedCount: 1 };
  for (let job = 0; job < 3; job++) dataOf(await team.admin.POST("/api/prospects/bulk", { body }), 202);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto("/files");
  await expect.poll(() => rows.count()).toBe(4);
  await expect.poll(() => rows.getByText("1 already were so").count()).toBe(3);
  expect(asked).toContain("/api/jobs");
  expect(asked.filter((path) => path.startsWith("/api/jobs/"))).toEqual([]);
});

test("a page follows its import although the service or the connection fails meanwhile", async () => {
  const { page } = admin;
  await page.goto("/files");
  const failing: ((route: Route) => Promise<void>)[] = [
    (route) => route.fulfill({ status: 503 }),
    (route) => route.abort(),
    (route) => route.fulfill({ status: 504 }),
  ];
  await page.route(/\/api\/prospects\/imports\/\d+$/, (route) =>
    (failing.shift() ?? ((last) => last.continue()))(route),
  );
  // The service answers 413 if a file causes too many changes for one request. The console then checks the file by a job.
  await page.route("**/api/prospects/import?*", (route) => route.fulfill({ status: 413 }), { times: 1 });
  await chooseCsv(page, "name,lat,lng\nDan,39.75,-104.95\n");
  await page.getByRole("status").getByText("1 prospect would be created.").waitFor();
  expect(failing).toEqual([]);
});

test.for([503, 504])("the check of a file becomes a job if one request is not enough (%i)", async (status) => {
  const { page } = admin;
  await page.goto("/files");
  await page.route("**/api/prospects/import?*", (route) => route.fulfill({ status }), { times: 1 });
  const job = page.waitForRequest((request) => request.url().endsWith("/api/prospects/imports"));
  await chooseCsv(page, "name,lat,lng\nEve,39.75,-104.95\n");
  await page.getByRole("status").getByText("1 prospect would be created.").waitFor();
  await job;
});

test("the table of prospects loads the territories only when the user opens the filters", async () => {
  const { page } = admin;
  dataOf(await team.admin.POST("/api/territories", { body: { name: "North" } }), 201);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto("/prospects");
  await page.getByText("the newest first").waitFor();
  await page.waitForLoadState("networkidle");
  expect(asked).toContain("/api/prospects");
  expect(asked).not.toContain("/api/territories");
  await page.getByRole("button", { name: "Filters", exact: true }).click();
  await page.getByLabel("Territory").selectOption({ label: "North" });
  await page.getByText("No prospect matches").waitFor();
  // The URL contains the filter, so the page still shows it after a reload.
  await page.reload();
  await page.getByText("No prospect matches").waitFor();
  await page.getByRole("button", { name: "Filters (1)" }).click();
  await expect.poll(() => page.getByLabel("Territory").locator("option:checked").allInnerTexts()).toEqual(["North"]);
});
