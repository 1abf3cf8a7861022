/** Tests the console in a real browser: the table of prospects, imports, a territory, and a webhook whose deliveries fail. */
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
  chooseCsv,
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
const browser = browserForAll(async (opened) => {
  team = await newTeam();
  owner = await visit(opened, team.admin.email, "/files");
});

// All test files share the demo companies, so these tests only read them.
const admin = "admin@acme.test";
const rep = "rep@acme.test";

const listOf = async (email: string) =>
  dataOf(await clientOf(email).GET("/api/prospects", { params: { query: { pageSize: 500 } } }));

const isRefusedTerritory = (fault: string): boolean => /400 .*\/api\/territories$/.test(fault);

describe("the table", () => {
  test("has the order and the filters of its address, and a prospect opens beside it", async () => {
    const path = "/prospects?status=Sold&sort=-name";
    const visited = await visit(browser(), admin, path);
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
    await page.keyboard.press("Escape");
    expect(await focused(page)).toBe(sold[0]);
    await page.getByRole("button", { name: sold[1] ?? "", exact: true }).click();
    await page.getByRole("button", { name: "Close the prospect" }).click();
    expect(await focused(page)).toBe(sold[1]);
    expect(faults).toEqual([]);
    await context.close();
  });

  test("shows a rep the assigned prospects, on a phone too, and nothing that only admins may do", async () => {
    const { context, page } = await visit(browser(), rep, "/prospects?sort=name", phone);
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody tr").count()).toBe((await listOf(rep)).total);
    await picture(page, "phone");
    await page.getByRole("button", { name: "Menu" }).click();
    expect(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts()).not.toContain(
      "Webhooks",
    );
    expect(await page.getByRole("button", { name: /^Change all/ }).count()).toBe(0);
    await context.close();
  });
});

const file = `name,lat,lng,status
Ann,39.75,-104.95,New
Bob,39.76,-104.96,New
Cid,39.95,-104.95,New
Dan,91,-104.95,New
`;

const focused = (page: Page): Promise<string> => page.evaluate("document.activeElement.innerText.slice(0, 99)");

const message = (page: Page, text: string | RegExp) => page.getByRole("status").getByText(text);

/** These tests run in this order on one company. */
describe("an admin", () => {
  test("tries a file with a fault, imports it, and undoes it", async () => {
    const { page } = owner;
    const choose = (text = file) => chooseCsv(page, text);
    const total = async () => dataOf(await team.admin.GET("/api/prospects")).total;
    await choose("name,lat,lng\n");
    await message(page, "the file has no rows below its header.").waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
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

  test("sends a file of 2,000 lines with one request, and a longer one to a job", async () => {
    const { page } = owner;
    const pathOf = async (lines: number): Promise<string> => {
      const text = ["name,lat,lng", ...Array.from({ length: lines - 1 }, (_, i) => `Door ${i},39.75,-104.95`)].join(
        "\n",
      );
      const sent = page.waitForRequest((request) => request.method() === "POST");
      await chooseCsv(page, text);
      const path = new URL((await sent).url()).pathname;
      const count = (lines - 1).toLocaleString("en-US");
      await message(page, `${count} prospects would be created.`).waitFor();
      return path;
    };
    expect(await pathOf(2_000)).toBe("/api/prospects/import");
    expect(await pathOf(2_001)).toBe("/api/prospects/imports");
  });

  test("cancels an import whose file is being sent, and one in the list, and sees what remains", async () => {
    const { page, context } = owner;
    const waiting = dataOf(await team.admin.POST("/api/prospects/imports", { body: {} }), 201);
    const uploads = /\/uploads\//;
    await context.route(uploads, () => undefined);
    await page.getByRole("button", { name: "Import 2,000 rows" }).click();
    await page.getByRole("button", { name: "Cancel the import", exact: true }).click();
    const notices = message(page, "The import is cancelled. It creates no prospects.");
    await notices.waitFor();
    await page.getByRole("progressbar", { name: "Progress of the import" }).waitFor({ state: "detached" });
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole("button", { name: /^Cancel the import of/ }).click();
    await expect.poll(() => notices.count()).toBe(2);
    await context.unroute(uploads);
    const { items } = dataOf(await team.admin.GET("/api/prospects/imports", { params: { query: { limit: 100 } } }));
    const cancelled = items.filter(({ state }) => state === "cancelled").map(({ id }) => id);
    expect(cancelled).toHaveLength(2);
    expect(cancelled).toContain(waiting.id);
    await closeMessages(page);
  });

  test("makes a territory, and sees the faults at its fields", async () => {
    const { page } = owner;
    await page.getByRole("link", { name: "Territories" }).click();
    await page.getByRole("button", { name: "Type the corners" }).click();
    const dialog = page.getByRole("dialog");
    const save = dialog.getByRole("button", { name: "Save" });
    const [name, corners] = [dialog.getByLabel("Name"), dialog.getByLabel("Corners")];
    const alert = dialog.getByRole("alert");
    await corners.fill("-105, 39.7\n-104.9, 39.7");
    await save.click();
    await alert.getByText("Corners: Write at least three corners.").waitFor();
    expect(await corners.getAttribute("aria-invalid")).toBe("true");
    await corners.fill("-105, 39.7\n-104.9, 39.7\n-104.9, 39.8\n-105, 39.8");
    await name.fill("North".repeat(52));
    await save.click();
    // The console does not check the length of the name, so the service finds this fault. The console must show it at the field.
    await alert.getByText("Name: must have at most 255 characters.").waitFor();
    expect(await name.getAttribute("aria-invalid")).toBe("true");
    expect(await corners.getAttribute("aria-invalid")).toBe(null);
    expect(await violationsOf(page)).toEqual([]);
    await name.fill("North");
    await save.click();
    await dialog.waitFor({ state: "detached" });
    expect(await focused(page)).toBe("Type the corners");
  });

  test("sends a failed delivery again when its receiver works, and sees if it is being sent", async () => {
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
    await dialog.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("button", { name: "Send a test event" }).click();
    const log = page.getByRole("region", { name: "Deliveries" });
    await log.getByText("waiting").waitFor();
    await log.getByRole("button", { name: /^Details of webhook.test/ }).click();
    await dialog.getByText("status 500").first().waitFor();
    await dialog.getByRole("button", { name: "Close", exact: true }).click();
    const button = log.getByRole("button", { name: /^Send now: webhook.test/ });
    await pressUntil(page, button, "The delivery is sent again.");
    await receiver.until(2);
    await pressUntil(page, button, BEING_SENT);
    await expect.poll(() => faults.some(isBeingSent)).toBe(true);
    expect(await page.locator('[data-kind="failed"]').count()).toBe(0);
    isWorking = true;
    for (const response of waiting) response.writeHead(204).end();
    await log.getByText("delivered").waitFor();
    await closeMessages(page);
    await picture(page, "webhook");
    expect(await violationsOf(page)).toEqual([]);
    const isExpected = (fault: string): boolean => isBeingSent(fault) || isRefusedTerritory(fault);
    expect(faults.filter((fault) => !isExpected(fault))).toEqual([]);
  });

  test("creates a webhook once with two clicks, and sees its secret after an Escape right after them", async () => {
    const { page } = owner;
    await page.goto("/webhooks");
    await page.getByRole("button", { name: "New webhook" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Once");
    await dialog.getByLabel("URL").fill("https://example.com/once");
    // A task with the priority of user input runs before the timers of the page. The page has therefore not yet reacted to the first click.
    await page.evaluate(`(() => {
      const dialog = document.querySelector("dialog");
      const submit = dialog.querySelector("button[type=submit]");
      submit.click();
      return scheduler.postTask(
        () => {
          submit.click();
          dialog.dispatchEvent(new Event("cancel", { cancelable: true }));
        },
        { priority: "user-blocking" },
      );
    })()`);
    await dialog.getByRole("heading", { name: "The webhook is created" }).waitFor();
    const webhooks = dataOf(await team.admin.GET("/api/webhooks"));
    expect(webhooks.filter(({ name }) => name === "Once")).toHaveLength(1);
    await dialog.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("heading", { name: "Once" }).waitFor();
  });
});
