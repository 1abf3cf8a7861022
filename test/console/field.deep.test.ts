/** Tests of the field mode in a real browser with the screen of a phone: doors, changes without a connection, and what stays on the device. */
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, chooseUser, soon, type Visit, visit } from "./visit.ts";

const screen = { width: 390, height: 780 };
const address = { address2: null, city: "Denver", state: "CO", zip: "80207" };

let team: Team;
let rep: Visit;
let page: Page;
const browserOr = browserForAll(async (browser) => {
  team = await newTeam();
  const { user } = dataOf(await team.rep.GET("/api/me"));
  for (const number of [1, 3, 5, 7, 9, 4]) {
    const place = { lat: 39.75, lng: -104.9 - number / 10_000, address: { ...address, address1: `${number} Elm St` } };
    const body = { ...place, name: `Owner of ${number}`, assignedToUserId: user.id };
    dataOf(await team.admin.POST("/api/prospects", { body }), 201);
  }
  const polygon = [
    [-104.91, 39.74],
    [-104.89, 39.74],
    [-104.89, 39.76],
    [-104.91, 39.76],
  ];
  dataOf(await team.admin.POST("/api/territories", { body: { name: "Elm", polygon, assignedToUserId: user.id } }), 201);
  rep = await visit(browser, team.rep.email, "/", screen);
  page = rep.page;
  await upToDate(page);
});

const upToDate = (at: Page) => at.getByRole("status").getByText("Up to date").waitFor();
const door = (at: Page = page) => at.getByRole("region", { name: "Door" });
const title = (at: Page = page) => door(at).getByRole("heading", { level: 2 });
const press = (name: string, at: Page = page) => at.getByRole("button", { name, exact: true }).click();

/** The addresses of the doors with a status, as an admin sees them. */
async function statusesOf(): Promise<Record<string, string>> {
  const { items } = dataOf(await team.admin.GET("/api/prospects", { params: { query: { pageSize: 100 } } }));
  return Object.fromEntries(
    items.flatMap(({ address: place, currentStatus }) =>
      place === null || currentStatus === null ? [] : [[place.address1, currentStatus.value]],
    ),
  );
}

async function reopened(context: BrowserContext): Promise<Page> {
  const opened = await context.newPage();
  await opened.goto("/field");
  await title(opened).waitFor();
  return opened;
}

/** Opens a door by its pin. The map must have drawn it. */
async function open(address1: string): Promise<void> {
  await press("Today");
  await press("Close");
  for (let i = 0; i < 10 && (await title().textContent()) !== address1; i++) await press("Next door");
  expect(await title().textContent()).toBe(address1);
}

test("each status takes one tap, and the sheet then shows the next door on the same side of the street", async () => {
  browserOr();
  await open("1 Elm St");
  for (const [status, next] of [
    ["Not Home", "3 Elm St"],
    ["Go Back", "5 Elm St"],
    ["Sold", "7 Elm St"],
  ] as const) {
    await press(status);
    await expect.poll(() => title().textContent()).toBe(next);
  }
  await expect.poll(() => statusesOf()).toEqual({ "1 Elm St": "Not Home", "3 Elm St": "Go Back", "5 Elm St": "Sold" });
  await press("Undo");
  await expect.poll(async () => (await statusesOf())["5 Elm St"]).toBeUndefined();
  expect(rep.faults).toEqual([]);
});

test("changes without a connection survive the closed tab, and arrive once when the connection is back", async () => {
  browserOr();
  const { context } = rep;
  await page.evaluate("navigator.serviceWorker.ready");
  await expect
    .poll(() =>
      page.evaluate("caches.open('canvassing-console').then((cache) => cache.keys()).then((keys) => keys.length)"),
    )
    .toBeGreaterThan(10);
  await context.setOffline(true);
  await page.close();
  const offline = await reopened(context);
  const marked: Record<string, string> = {};
  for (const status of ["Not Home", "Go Back", "Interested", "Sold"]) {
    marked[(await title(offline).textContent()) ?? ""] = status;
    await press(status, offline);
  }
  await offline.getByLabel("New note").fill("Dog in the yard");
  await press("Add note", offline);
  await offline.getByRole("status").getByText("Offline, 5 waiting").waitFor();
  const last = await title(offline).textContent();
  await offline.close();
  await context.setOffline(false);
  page = await reopened(context);
  expect(await title().textContent()).toBe(last);
  await upToDate(page);
  expect(await statusesOf()).toMatchObject(marked);
  const notes = [];
  for (const { id } of dataOf(await team.admin.GET("/api/prospects")).items) {
    const detail = dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path: { id } } }));
    notes.push(...detail.notes.map(({ body }) => body));
  }
  expect(notes).toEqual(["Dog in the yard"]);
});

test("the service worker keeps the page and its files, and no answer of the API", async () => {
  browserOr();
  const kept = await page.evaluate(
    "caches.open('canvassing-console').then((cache) => cache.keys()).then((keys) => keys.map(({ url }) => new URL(url).pathname))",
  );
  expect(kept).toContain("/");
  for (const path of Array.isArray(kept) ? kept : []) expect(path).toMatch(/^\/(?:$|assets\/)/);
});

test("the device keeps the streets of the user's territories, and says how large they are", async () => {
  browserOr();
  await page.getByRole("status").getByText("Up to date").click();
  await page.getByText("The street map of your territories takes 1 MB of at most 50 MB.").waitFor();
  await page.getByText("The data on this device takes").waitFor();
  await press("Close");
  await rep.context.setOffline(true);
  await page.close();
  page = await reopened(rep.context);
  const sources = "[...new Set(shownMap.queryRenderedFeatures().map(({ source }) => source))]";
  await expect.poll(() => page.evaluate(sources), soon).toContain("base streets");
  await rep.context.setOffline(false);
});

test("Safari says that it deletes what waits, and how to install the page", async () => {
  browserOr();
  const safari =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1";
  await rep.context.setOffline(true);
  await press("Not Home");
  await page.evaluate(`Object.defineProperty(navigator, "userAgent", { value: ${JSON.stringify(safari)} })`);
  await page.getByRole("status").getByText("1 waiting").click();
  await page.getByText("Safari deletes what waits after seven days without a visit").waitFor();
  await page.getByText("This device has no connection.").waitFor();
  await press("Close");
  await rep.context.setOffline(false);
  await upToDate(page);
});

test("a conflict is shown in words, and the user decides", async () => {
  browserOr();
  await open("7 Elm St");
  await rep.context.setOffline(true);
  await press("Edit");
  await page.getByRole("dialog").getByLabel("Name").fill("Mine");
  await press("Save");
  await page.getByRole("status").getByText("1 waiting").waitFor();
  const prospect = dataOf(await team.admin.GET("/api/prospects")).items.find(({ name }) => name === "Owner of 7");
  const path = { id: prospect?.id ?? expect.fail("there is no such prospect") };
  dataOf(await team.admin.PATCH("/api/prospects/{id}", { params: { path }, body: { name: "Theirs" } }));
  await rep.context.setOffline(false);
  await page.getByRole("button", { name: "1 change needs your decision" }).click();
  await page.getByText("name is Theirs, yours is Mine.").waitFor();
  await press("Use mine");
  // The dialog becomes smaller when the change has been sent, and its buttons move.
  await page.getByText("Nothing is waiting.").waitFor();
  await page.getByText("The data on this device takes").waitFor();
  await press("Close");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await upToDate(page);
  expect(dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path } })).name).toBe("Mine");
});

test("after a long press on the map, the user adds a door", async () => {
  browserOr();
  await page.getByRole("region", { name: "Map of doors" }).click({ button: "right", position: { x: 200, y: 200 } });
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Street and number").fill("11 Elm St");
  await press("Save");
  await expect.poll(() => title().textContent()).toBe("11 Elm St");
  await press("Interested");
  await expect.poll(async () => (await statusesOf())["11 Elm St"]).toBe("Interested");
});

test("another user of the device sees nothing of the data, and a sign-out deletes it", async () => {
  browserOr();
  await rep.context.setOffline(true);
  await press("Not Home");
  await page.getByRole("status").getByText("1 waiting").waitFor();
  await rep.context.setOffline(false);
  await press("Menu");
  await press("Sign out");
  const [send, signIn] = [page.getByRole("button", { name: "Send first" }), page.getByLabel("Another user")];
  // The change may have been sent before the dialog opened.
  await expect.poll(async () => (await send.isVisible()) || (await signIn.isVisible())).toBe(true);
  if (await send.isVisible()) await send.click();
  await signIn.waitFor();
  await chooseUser(page, team.viewer.email);
  await page.goto("/field");
  await upToDate(page);
  const databases = await page.evaluate(
    "indexedDB.databases().then((all) => all.map(({ name }) => name).filter((name) => name.startsWith('canvassing-field')))",
  );
  expect(databases).toHaveLength(1);
});

test("a deployment that switches the worker off removes it from the devices", async () => {
  browserOr();
  const config = await (await page.request.get("/config.json")).json();
  await page.route("**/config.json", (route) => route.fulfill({ json: { ...config, offline: false } }));
  await page.goto("/field");
  const left = "navigator.serviceWorker.getRegistrations().then((all) => all.length)";
  await expect.poll(() => page.evaluate(left)).toBe(0);
  await expect.poll(() => page.evaluate("caches.keys()")).toEqual([]);
});
