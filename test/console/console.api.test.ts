/**
 * Tests the console in a real browser: users sign in, pages show what the API shows to these users, and an admin imports a file, assigns a
 * territory and sends a webhook again.
 */
import type { ServerResponse } from "node:http";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { clientOf } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import {
  BEING_SENT,
  browserForAll,
  closeMessages,
  figuresOf,
  isBeingSent,
  phone,
  picture,
  pressUntil,
  TOLERANCE,
  type Visit,
  violationsOf,
  visit,
} from "./visit.ts";

let team: Team;
let owner: Visit;
const browserOr = browserForAll(async (browser) => {
  team = await newTeam();
  owner = await visit(browser, team.admin.email, "/files");
});

// All test files share the demo companies, so these tests only read them.
const admin = "admin@acme.test";
const rep = "rep@acme.test";
const foreigner = "owner@globex.test";

const listOf = async (email: string, search?: string) => {
  const query = { pageSize: 500, ...(search !== undefined && { search }) };
  return dataOf(await clientOf(email).GET("/api/prospects", { params: { query } }));
};

/** True for the message that the browser logs for a response with the status 413. */
const isTooLarge = (fault: string): boolean => fault.includes("413");

describe("the table", () => {
  test("has the order and the filters of its address, and a prospect opens beside it", async ({ skip }) => {
    const path = "/prospects?status=Sold&sort=-name";
    const visited = await visit(browserOr(skip), admin, path);
    const { context, page, faults } = visited;
    const names = page.locator("tbody tr td:nth-child(2)");
    await names.first().waitFor();
    const { items } = await listOf(admin);
    const sold = items.filter(({ currentStatus }) => currentStatus?.value === "Sold").map(({ name }) => name ?? "");
    expect(await names.allInnerTexts()).toEqual(sold.sort().reverse());
    const { stated, measured } = await figuresOf("First visit of the table", visited);
    expect(measured).toBeLessThanOrEqual(stated * TOLERANCE);
    await picture(page, "prospects");
    await names.first().getByRole("button").click();
    await page
      .getByRole("complementary", { name: "Prospect" })
      .getByRole("heading", { name: sold[0] ?? "" })
      .waitFor();
    expect(new URL(page.url()).searchParams.get("prospect")).toMatch(/^\d+$/);
    expect(await violationsOf(page)).toEqual([]);
    expect(faults).toEqual([]);
    await context.close();
  });

  test("shows a rep the assigned prospects, on a phone too, and nothing that only admins may do", async ({ skip }) => {
    const { context, page } = await visit(browserOr(skip), rep, "/prospects?sort=name", phone);
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody tr").count()).toBe((await listOf(rep)).total);
    await picture(page, "phone");
    await page.getByRole("button", { name: "Menu" }).click();
    expect(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts()).not.toContain(
      "Webhooks",
    );
    expect(await page.getByRole("button", { name: /^Change all/ }).count()).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(await violationsOf(page)).toEqual([]);
    await context.close();
  });

  test("shows nothing of another company", async ({ skip }) => {
    const [prospect] = (await listOf(admin)).items;
    if (prospect === undefined) throw new Error("the demo company has no prospects");
    const search = encodeURIComponent(prospect.phoneNumber ?? "");
    const { context, page } = await visit(
      browserOr(skip),
      foreigner,
      `/prospects?search=${search}&prospect=${prospect.id}`,
    );
    await page.getByRole("heading", { name: "No prospect matches" }).waitFor();
    await page.getByRole("heading", { name: "The console could not load the prospect" }).waitFor();
    expect(await page.content()).not.toContain(prospect.name ?? "");
    await context.close();
  });
});

const file = `name,lat,lng,status
Ann,39.75,-104.95,New
Bob,39.76,-104.96,New
Cid,39.95,-104.95,New
Dan,91,-104.95,New
`;

const message = (page: Page, text: string | RegExp) => page.getByRole("status").getByText(text);

/** These tests use one company in this order, as an admin does at the beginning. */
describe("an admin", () => {
  test("tries a file with a fault, imports it, and undoes it", async ({ skip }) => {
    browserOr(skip);
    const { page } = owner;
    const choose = () =>
      page
        .getByLabel(/Drop a CSV file/)
        .setInputFiles({ name: "doors.csv", mimeType: "text/csv", buffer: Buffer.from(file) });
    const total = async () => dataOf(await team.admin.GET("/api/prospects")).total;
    await choose();
    await message(page, "3 prospects would be created, 1 row would be skipped.").waitFor();
    const fault = page.getByRole("region", { name: "Rows with faults" }).locator("tbody tr");
    await fault.getByText("Dan,91,-104.95,New").waitFor();
    expect(await fault.locator("td").first().innerText()).toBe("5");
    expect(await total()).toBe(0);
    await page.getByRole("button", { name: "Import 3 rows" }).click();
    await page.getByRole("button", { name: "Undo the import" }).click();
    await message(page, "3 prospects restored.").waitFor();
    expect(await total()).toBe(0);
    await choose();
    await page.getByRole("button", { name: "Import 3 rows" }).click();
    await page.getByRole("button", { name: "Undo the import" }).waitFor();
    expect(await total()).toBe(3);
    expect(await violationsOf(page)).toEqual([]);
  });

  test("sends a file of 2,000 lines with one request, and a longer one to a job", async ({ skip }) => {
    browserOr(skip);
    const { page, faults } = owner;
    const tried = async (lines: number): Promise<string> => {
      const text = ["name,lat,lng", ...Array.from({ length: lines - 1 }, (_, i) => `Door ${i},39.75,-104.95`)].join(
        "\n",
      );
      const sent = page.waitForRequest((request) => request.method() === "POST");
      await page
        .getByLabel(/Drop a CSV file/)
        .setInputFiles({ name: "doors.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
      const path = new URL((await sent).url()).pathname;
      const count = (lines - 1).toLocaleString("en-US");
      await message(page, `${count} prospects would be created.`).waitFor({ timeout: 120_000 });
      return path;
    };
    // The service refuses a short file if it has too many changes for one request.
    await page.route("**/api/prospects/import?*", (route) => route.fulfill({ status: 413 }), { times: 1 });
    const job = page.waitForRequest((request) => request.url().endsWith("/api/prospects/imports"));
    expect(await tried(4)).toBe("/api/prospects/import");
    await job;
    expect(faults.filter(isTooLarge)).toHaveLength(1);
    expect(await tried(2_000)).toBe("/api/prospects/import");
    expect(await tried(2_001)).toBe("/api/prospects/imports");
  });

  test("cancels an import whose file is being sent, and one in the list, and is told what remains", async ({
    skip,
  }) => {
    browserOr(skip);
    const { page, context } = owner;
    const waiting = dataOf(await team.admin.POST("/api/prospects/imports", { body: {} }), 201);
    const uploads = /\/uploads\//;
    await context.route(uploads, () => undefined);
    await page.getByRole("button", { name: "Import 2,000 rows" }).click();
    await page.getByRole("button", { name: "Cancel the import", exact: true }).click();
    const told = message(page, "The import is cancelled. It creates no prospects.");
    await told.waitFor();
    await page.getByRole("progressbar", { name: "Progress of the import" }).waitFor({ state: "detached" });
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole("button", { name: /^Cancel the import of/ }).click();
    await expect.poll(() => told.count()).toBe(2);
    await context.unroute(uploads);
    const { items } = dataOf(await team.admin.GET("/api/prospects/imports", { params: { query: { limit: 2 } } }));
    expect(items.map(({ state }) => state)).toEqual(["cancelled", "cancelled"]);
    expect(items.map(({ id }) => id)).toContain(waiting.id);
    await closeMessages(page);
  });

  test("makes a territory with the keyboard, and assigns the prospects inside", async ({ skip }) => {
    browserOr(skip);
    const { page } = owner;
    await page.getByRole("link", { name: "Territories" }).click();
    await page.getByRole("button", { name: "Type the corners" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("North");
    await dialog.getByLabel("Corners").fill("-105, 39.7\n-104.9, 39.7\n-104.9, 39.8\n-105, 39.8");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "North" }).click();
    await page.getByText("2 prospects inside.").waitFor();
    await page.getByRole("button", { name: "Assign the prospects" }).click();
    await dialog.getByRole("combobox", { name: "To", exact: true }).selectOption({ label: "Ravi Rep" });
    await dialog.getByRole("button", { name: "Assign all: 2 prospects" }).click();
    await message(page, "2 prospects changed.").waitFor();
    expect(
      dataOf(await team.rep.GET("/api/prospects"))
        .items.map(({ name }) => name)
        .sort(),
    ).toEqual(["Ann", "Bob"]);
    expect(await violationsOf(page)).toEqual([]);
  });

  test("sends a failed delivery again when its receiver works, and is told if it is being sent", async ({ skip }) => {
    browserOr(skip);
    const { page, faults } = owner;
    const waiting: ServerResponse[] = [];
    let isWorking = false;
    const receiver = await startReceiver((_, response, count) => {
      // Retry-After postpones the attempts of the retry plan until after this test.
      if (count === 1) response.writeHead(500, { "Retry-After": "86400" }).end();
      else if (isWorking) response.writeHead(204).end();
      else waiting.push(response);
    });
    onTestFinished(receiver.close);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("button", { name: "New webhook" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("CRM");
    await dialog.getByLabel("URL").fill(receiver.url);
    await dialog.getByRole("button", { name: "Create the webhook" }).click();
    await dialog.getByRole("button", { name: "Open the webhook" }).click();
    await page.getByRole("button", { name: "Send a test event" }).click();
    const log = page.getByRole("region", { name: "Deliveries" });
    await log.getByText("waiting").waitFor();
    await log.getByRole("button", { name: /^Details of webhook.test/ }).click();
    await dialog.getByText("status 500").first().waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    const button = log.getByRole("button", { name: /^Send now: webhook.test/ });
    await pressUntil(page, button, "The delivery is sent again.");
    await receiver.until(2);
    await pressUntil(page, button, BEING_SENT);
    await expect.poll(() => faults.some(isBeingSent)).toBe(true);
    expect(await page.locator('[data-kind="failed"]').count()).toBe(0);
    isWorking = true;
    for (const response of waiting) response.writeHead(204).end();
    await log.getByText("delivered").waitFor();
    await picture(page, "webhook");
    expect(await violationsOf(page)).toEqual([]);
    expect(faults.filter((fault) => !isBeingSent(fault) && !isTooLarge(fault))).toEqual([]);
  });
});
