/** Tests webhooks and bulk changes in a real browser, and pages without a connection and after the end of a session. */
import { setTimeout as wait } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter-match.ts";
import { openContext } from "../harness/browser.ts";
import { at, baseUrl, flushAuthorizers } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, statusIdOf, type Team } from "../harness/team.ts";
import { browserForAll, chooseChange, chooseUser, type Visit, violationsOf, visit } from "./visit.ts";

let team: Team;
/** The tests use this page one after the other, because each sign-in loads the console again. */
let admin: Visit;
/** A page that is opened before all tests. Its access token is valid for a second, and the service accepts it for another minute. */
let shortLived: { readonly page: Page; readonly expiredAt: number };

browserForAll(async (browser) => {
  team = await newTeam();
  shortLived = await visitForASecond(browser, team.viewer.email, "/prospects?sort=name");
  admin = await visit(browser, team.admin.email, "/webhooks");
  await admin.page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
});

const LEEWAY_MS = 60_000;

async function visitForASecond(browser: Browser, email: string, path: string) {
  const context = await openContext(browser, { baseURL: baseUrl() });
  const page = await context.newPage();
  await page.goto(`/api/session/login?returnTo=${encodeURIComponent(path)}`);
  await page.evaluate(
    `document.forms[1].insertAdjacentHTML("beforeend", '<input type="hidden" name="expires_in" value="1">')`,
  );
  await chooseUser(page, email);
  await page.getByRole("heading", { name: "Prospects", exact: true }).waitFor();
  return { page, expiredAt: Date.now() + 1_000 + LEEWAY_MS };
}

const statusId = (value: string) => statusIdOf(team.admin, value);

const newProspect = async (name: string) =>
  dataOf(await team.admin.POST("/api/prospects", { body: { name, currentStatusId: await statusId("New") } }), 201);

async function setStatus(id: number, value: string): Promise<void> {
  const body = { currentStatusId: await statusId(value) };
  dataOf(await team.admin.PATCH("/api/prospects/{id}", { ...at(id), body }));
}

test("a time span without activity offers the longest one", async () => {
  const { page } = admin;
  // The company has no activity yet, so the page for 7 days is empty and offers a longer time span.
  await page.goto("/activity?days=7");
  const offer = page.getByRole("button", { name: "Show the last 365 days" });
  await offer.click();
  await page.waitForURL("**/activity?days=365");
  await offer.waitFor({ state: "detached" });
});

describe("a webhook", () => {
  test("shows which of the last events a filter would match, as the service decides it", async () => {
    const receiver = await startReceiver();
    onTestFinished(receiver.close);
    const body = { name: "Preview", url: receiver.url, registrations: [{ event: "prospect.status_changed" }] };
    const { id } = dataOf(await team.admin.POST("/api/webhooks", { body }), 201);
    for (const value of ["Sold", "Interested", "Not Home"]) {
      await setStatus((await newProspect(`Previewed ${value}`)).id, value);
    }
    await receiver.until(3);
    const { page, faults } = admin;
    await page.goto(`/webhooks/${id}`);
    await page.getByRole("button", { name: "Add a registration" }).click();
    const dialog = page.getByRole("dialog");
    const preview = dialog.getByRole("region", { name: "Preview" });
    const matching = async (filter: Record<string, unknown> | null): Promise<void> => {
      const count = receiver.receipts.filter(({ event }) => matchesFilter(filter, event.data)).length;
      await preview.getByText(`${count} of the last 3 events would match.`).waitFor();
      expect(await preview.locator('[data-match="true"]').count()).toBe(count);
      if (filter !== null) await dialog.getByText(JSON.stringify(filter), { exact: true }).waitFor();
    };
    await matching(null);
    await dialog.getByRole("button", { name: "Add a condition" }).click();
    await dialog.getByLabel("Field").fill("newStatus.value");
    await dialog.getByLabel("Value").fill("Sold");
    await matching({ "newStatus.value": "Sold" });
    const operator = dialog.getByLabel("Operator");
    await operator.selectOption({ label: "is empty" });
    await matching({ "newStatus.value": null });
    await dialog.getByLabel("Field").fill("newStatus.id");
    await operator.selectOption({ label: "is any of the numbers" });
    const numbers = [await statusId("Sold"), await statusId("Not Home")];
    await dialog.getByLabel("Value").fill(numbers.join());
    await matching({ "newStatus.id": numbers });
    expect(await violationsOf(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    const filters = async () => {
      const { registrations } = dataOf(await team.admin.GET("/api/webhooks/{id}", at(id)));
      return registrations.map(({ filter, delayMinutes }) => ({ filter, delayMinutes }));
    };
    expect(await filters()).toContainEqual({ filter: { "newStatus.id": numbers }, delayMinutes: 0 });
    const filtered = page
      .getByRole("region", { name: "Registrations" })
      .getByRole("row")
      .filter({ hasText: "newStatus" });
    await filtered.getByRole("button", { name: /^Edit/ }).click();
    expect(await dialog.getByLabel("Value").inputValue()).toBe(numbers.join(", "));
    await dialog.getByLabel("Delay in minutes").fill("5");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await filters()).toContainEqual({ filter: { "newStatus.id": numbers }, delayMinutes: 5 });
    await filtered.getByRole("button", { name: /^Delete/ }).click();
    expect(await filters()).toHaveLength(2);
    await dialog.getByRole("button", { name: "Delete the registration" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await filters()).toEqual([{ filter: null, delayMinutes: 0 }]);
    expect(faults).toEqual([]);
  });

  test("shows the headers that the receiver got, is paused and resumed, and sends its deliveries again", async () => {
    const receiver = await startReceiver((_, response, count) =>
      // Retry-After postpones the attempts of the retry plan until after this test.
      count === 1
        ? response.writeHead(500, { "Retry-After": "86400" }).end("out of order")
        : response.writeHead(204).end(),
    );
    onTestFinished(receiver.close);
    const body = { name: "Broken", url: receiver.url };
    const { id, secretKey } = dataOf(await team.admin.POST("/api/webhooks", { body }), 201);
    const { page, faults } = admin;
    await page.goto(`/webhooks/${id}`);
    await page.getByRole("button", { name: "Send a test event" }).click();
    await receiver.until(1);
    const log = page.getByRole("region", { name: "Deliveries" });
    await log.getByRole("button", { name: /^Details of webhook.test/ }).click();
    const dialog = page.getByRole("dialog");
    const first = dialog.getByRole("region", { name: "Attempt 1" });
    await first.getByText("out of order").waitFor();
    await first.getByText("Request headers").click();
    await first.getByText("X-Service-Signature: (not stored)").waitFor();
    await dialog.getByLabel("Secret of the webhook").fill(secretKey);
    const sent = present(receiver.receipts[0]).headers;
    const names = [
      ...["Content-Type", "User-Agent", "X-Service-Event", "X-Service-Delivery", "X-Service-Attempt"],
      ...["webhook-id", "webhook-timestamp", "X-Service-Signature", "webhook-signature"],
    ];
    await first.getByText(String(sent["webhook-signature"])).waitFor();
    expect((await first.locator("details pre").innerText()).split("\n")).toEqual(
      names.map((name) => `${name}: ${sent[name.toLowerCase()]}`),
    );
    expect(await violationsOf(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Close", exact: true }).click();
    expect(faults).toEqual([]);

    const isActive = async () => dataOf(await team.admin.GET("/api/webhooks/{id}", at(id))).status === "active";
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    expect(await isActive()).toBe(false);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    expect(await isActive()).toBe(true);
    const count = receiver.receipts.length;
    await page.getByRole("button", { name: "Send again …" }).click();
    await dialog.getByText("that have failed in all attempts, and those that wait for another attempt.").waitFor();
    await dialog.getByLabel("Which").selectOption({ label: "All" });
    await dialog.getByText("Also sends the deliveries that the receiver has already accepted.").waitFor();
    await dialog.getByRole("button", { name: "Send again" }).click();
    await receiver.until(count + 1);
  });
});

test("without a connection a page says so, and with it the page shows what has changed", async () => {
  const { context, page } = admin;
  await page.goto("/prospects?search=Offline");
  await page.getByRole("heading", { name: "No prospect matches" }).waitFor();
  await context.setOffline(true);
  const notice = page.getByText("You are offline.");
  await notice.waitFor();
  await newProspect("Offline Olga");
  expect(await page.getByRole("button", { name: "Offline Olga" }).count()).toBe(0);
  await context.setOffline(false);
  await notice.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Offline Olga" }).waitFor();
});

test("messages about a change of many prospects are inside an open dialog, and a new search clears the selection", async () => {
  for (const name of ["Bulk Ann", "Bulk Bob", "Bulk Cid"]) await newProspect(name);
  const { page } = admin;
  await page.goto("/prospects?search=Bulk");
  await page.getByRole("button", { name: "Change all 3 prospects …" }).click();
  const dialog = page.getByRole("dialog");
  await chooseChange(page, "Set the status", "Go Back");
  await dialog.getByText("This concerns 3 prospects.").waitFor();
  await dialog.getByRole("button", { name: "Set the status of 3 prospects to Go Back" }).click();
  const notices = page.getByRole("status");
  await notices.getByText("3 prospects changed.").waitFor();
  // A user can reach nothing outside an open dialog, so the messages are inside the dialog.
  await page.getByRole("button", { name: "Change all 3 prospects …" }).click();
  await dialog.getByText("3 prospects changed.").waitFor();
  await dialog.getByRole("button", { name: "Undo" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Undo" }).click();
  await notices.getByText("3 prospects restored.").waitFor();
  // A new search clears the selection. The admin could otherwise change selected prospects that the new search hides.
  await page.getByLabel("Select Bulk Ann").check();
  await page.getByText("1 prospect selected.").waitFor();
  await page.getByLabel("Search prospects").fill("Bulk Bob");
  await page.getByRole("button", { name: "Change all 1 prospect …" }).waitFor();
});

describe("the end of a session", () => {
  test("an access token that has expired is replaced without leaving the page", async () => {
    const { page, expiredAt } = shortLived;
    await wait(Math.max(0, expiredAt - Date.now()));
    await flushAuthorizers();
    await newProspect("Late Lea");
    await page.evaluate("window.stays = true");
    const answers: string[] = [];
    page.on("response", (response) => answers.push(`${response.status()} ${new URL(response.url()).pathname}`));
    // A refresh of the session that fails does not end the session: the console tries again.
    await page.route("**/api/session/refresh", (route) => route.fulfill({ status: 503 }), { times: 1 });
    await page.getByLabel("Search prospects").fill("Late Lea");
    await page.getByRole("button", { name: "Late Lea" }).waitFor();
    expect(answers.filter((answer) => answer.endsWith("/api/session/refresh"))).toEqual([
      "503 /api/session/refresh",
      "204 /api/session/refresh",
    ]);
    expect(answers).toContain("401 /api/prospects");
    expect(await page.evaluate("window.stays")).toBe(true);
    expect(new URL(page.url()).searchParams.get("sort")).toBe("name");
    await page.context().close();
  });

  test("without a session, a page signs in and comes back with its filters", async () => {
    const { context, page } = admin;
    await page.goto("/prospects?status=New&sort=-name");
    await page.getByRole("heading", { name: "Prospects", exact: true }).waitFor();
    await context.clearCookies();
    await page.getByLabel("Search prospects").fill("Bulk");
    await chooseUser(page, team.admin.email);
    await page.getByRole("button", { name: "Bulk Ann" }).waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      status: "New",
      sort: "-name",
      search: "Bulk",
    });
    await context.clearCookies();
    await page.goto("/territories?territory=0");
    await chooseUser(page, team.admin.email);
    await page.getByRole("heading", { name: "Territories", exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe("?territory=0");
  });

  test("a sign-out that fails says so, and one that succeeds ends the session", async () => {
    const { context, page } = admin;
    await page.goto("/users");
    const button = page.getByRole("button", { name: "Sign out" });
    await page.route("**/api/session/logout", (route) => route.fulfill({ status: 503 }), { times: 1 });
    await button.click();
    await page.getByRole("alert").getByText("You are still signed in. The service answered with status 503.").waitFor();
    await context.setOffline(true);
    await button.click();
    await page.getByRole("alert").getByText("You are still signed in. The service did not answer.").waitFor();
    await context.setOffline(false);
    expect(new URL(page.url()).pathname).toBe("/users");
    await button.click();
    await page.getByLabel("Another user").waitFor();
  });
});
