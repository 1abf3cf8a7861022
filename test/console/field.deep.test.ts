/** Tests of the field mode in a real browser with the screen of a phone: changes without a connection, and what stays on the device. */
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { FROM_CONSOLE } from "../harness/browser-session.ts";
import { dataOf } from "../harness/shapes.ts";
import type { Team } from "../harness/team.ts";
import { newRep, screen, statusesOf, titleOf, upToDate, walkTo } from "./field-stage.ts";
import { browserForAll, chooseUser, jumpTo, soon, type Visit, visit } from "./visit.ts";

let team: Team;
let rep: Visit;
let page: Page;
const browser = browserForAll(async (opened) => {
  ({ team, rep } = await newRep(opened));
  page = rep.page;
});

const DATABASES =
  "indexedDB.databases().then((all) => all.map(({ name }) => name).filter((name) => name.startsWith('canvassing-field')))";
const press = (name: string, at: Page = page) => at.getByRole("button", { name, exact: true }).click();
const query = (text: string): Promise<unknown> => page.evaluate(text);

async function reopened(context: BrowserContext): Promise<Page> {
  const opened = await context.newPage();
  await opened.goto("/field");
  await titleOf(opened).waitFor();
  return opened;
}

test("changes without a connection survive the closed tab, and arrive once when the connection is back", async () => {
  const { context } = rep;
  // An active service worker has stored the page and its files, so the page also opens without a connection.
  await page.evaluate("navigator.serviceWorker.ready");
  await context.setOffline(true);
  await page.close();
  const offline = await reopened(context);
  const marked: Record<string, string> = {};
  for (const status of ["Not Home", "Go Back", "Interested", "Sold"]) {
    const here = (await titleOf(offline).textContent()) ?? "";
    const [address1 = ""] = here.split(",");
    marked[address1] = status;
    await press(status, offline);
    await expect.poll(() => titleOf(offline).textContent()).not.toBe(here);
  }
  await offline.getByLabel("New note").fill("Dog in the yard");
  await press("Add note", offline);
  await offline.getByRole("status").getByText("Offline, 5 waiting").waitFor();
  const last = await titleOf(offline).textContent();
  await offline.close();
  await context.setOffline(false);
  page = await reopened(context);
  expect(await titleOf(page).textContent()).toBe(last);
  await upToDate(page);
  expect(await statusesOf(team)).toMatchObject(marked);
  const notes = [];
  for (const { id } of dataOf(await team.admin.GET("/api/prospects")).items) {
    const detail = dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path: { id } } }));
    notes.push(...detail.notes.map(({ body }) => body));
  }
  expect(notes).toEqual(["Dog in the yard"]);
});

test("the service worker keeps the page and its files, and no answer of the API", async () => {
  const kept = await page.evaluate(
    "caches.open('canvassing-console').then((cache) => cache.keys()).then((keys) => keys.map(({ url }) => new URL(url).pathname))",
  );
  expect(kept).toContain("/");
  for (const path of Array.isArray(kept) ? kept : []) expect(path).toMatch(/^\/(?:$|assets\/)/);
});

test("without a connection, the map has the kept streets of the territories, whose size is shown, or else those of the demo", async () => {
  await page.getByRole("status").getByText("Up to date").click();
  await page.getByText("The street map of your territories takes 1 MB of at most 50 MB.").waitFor();
  await page.getByText("The data on this device takes").waitFor();
  await press("Close");
  await rep.context.setOffline(true);
  await page.close();
  page = await reopened(rep.context);
  const sources = "[...new Set(shownMap.queryRenderedFeatures().map(({ source }) => source))]";
  await expect.poll(() => page.evaluate(sources), soon).toContain("base streets");
  await page.evaluate("caches.delete('canvassing-streets')");
  await page.close();
  page = await reopened(rep.context);
  await jumpTo(page, [-104.9268, 39.75], 14);
  await expect.poll(() => page.evaluate(sources), soon).toContain("streets");
  await rep.context.setOffline(false);
});

test("Safari says that it deletes what waits, and how to install the page", async () => {
  const safari =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1";
  await rep.context.setOffline(true);
  await press("Not Home");
  await page.evaluate(
    `Object.defineProperty(navigator, "userAgent", { value: ${JSON.stringify(safari)}, writable: true })`,
  );
  await page.getByRole("status").getByText("1 waiting").click();
  await page.getByText("Safari deletes what waits after seven days without a visit").waitFor();
  await page.getByText("This device has no connection.").waitFor();
  await press("Close");
  const sentence = page.getByText("Safari deletes what waits");
  const countAfter = async (state: string): Promise<number> => {
    await page.getByRole("status").getByText(state).click();
    await page.getByText("The data on this device takes").waitFor();
    const count = await sentence.count();
    await press("Close");
    return count;
  };
  const edge = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36 Edg/138.0";
  for (const [name, count] of [
    [safari.replace("Version/18.5", "Version/18.0 EdgiOS/138.0"), 1],
    [edge, 0],
    [safari, 1],
  ] as const) {
    await page.evaluate(`navigator.userAgent = ${JSON.stringify(name)}; 0`);
    expect(await countAfter("1 waiting"), name).toBe(count);
  }
  await page.evaluate(`window.matchMedia = ((real) => (query) =>
    query === "(display-mode: standalone)" ? { matches: true } : real(query))(matchMedia); 0`);
  expect(await countAfter("1 waiting"), "the page is installed").toBe(0);
  await rep.context.setOffline(false);
  await upToDate(page);
  await page.reload();
  await upToDate(page);
  await page.evaluate(`Object.defineProperty(navigator, "userAgent", { value: ${JSON.stringify(safari)} })`);
  expect(await countAfter("Up to date"), "nothing waits").toBe(0);
});

test("a conflict is shown in words, and the user decides", async () => {
  await walkTo(page, "7 Elm St");
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
  const places = () =>
    Promise.all(
      ["Use mine", "Close"].map((name) => page.getByRole("button", { name, exact: true }).first().boundingBox()),
    );
  await page.getByText("The data on this device takes").waitFor();
  const before = await places();
  await rep.context.setOffline(true);
  await page.getByText("This device has no connection.").waitFor();
  expect(await places(), "a button has moved while the dialog was open").toEqual(before);
  await rep.context.setOffline(false);
  await press("Use mine");
  await page.getByText("Nothing is waiting.").waitFor();
  await press("Close");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await upToDate(page);
  expect(dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path } })).name).toBe("Mine");
});

test("the page asks the browser to keep its data, says whether it does, and offers to install itself", async () => {
  const open = () => page.getByRole("status").getByText("Up to date").click();
  await query("navigator.storage.persisted = async () => false; navigator.storage.persist = async () => false; 0");
  await open();
  await page.getByText(/^The data on this device takes \d+ MB\. The browser may delete it/).waitFor();
  expect(await page.getByRole("button", { name: "Install on this device" }).count()).toBe(0);
  await press("Close");
  await query(`window.wanted = []; navigator.storage.persist = async () => wanted.push("persist") > 0;
    window.offer = new Event("beforeinstallprompt", { cancelable: true });
    offer.prompt = async () => wanted.push("install");
    dispatchEvent(offer)`);
  await open();
  await page.getByText(/^The data on this device takes \d+ MB\. The browser keeps it\.$/).waitFor();
  await press("Install on this device");
  expect(await query("[wanted.at(-1), wanted[0], offer.defaultPrevented]")).toEqual(["install", "persist", true]);
  expect(await page.getByRole("button", { name: "Install on this device" }).count()).toBe(0);
  await press("Close");
});

test("a browser may install the page: it has a manifest and its icons", async () => {
  const url = await page.locator('link[rel="manifest"]').getAttribute("href");
  const Manifest = z.object({
    ...{ name: z.string(), start_url: z.string(), display: z.literal("standalone") },
    icons: z.array(z.object({ src: z.string(), sizes: z.string() })),
  });
  const manifest = Manifest.parse(await (await page.request.get(`${url}`)).json());
  expect(manifest.icons.map(({ sizes }) => sizes)).toEqual(expect.arrayContaining(["192x192", "512x512"]));
  for (const { src } of manifest.icons)
    expect((await page.request.get(src)).headers()["content-type"]).toBe("image/png");
});

test("another user of the device sees nothing of the data, and a sign-out deletes it", async () => {
  await rep.context.setOffline(true);
  await press("Not Home");
  await page.getByRole("status").getByText("1 waiting").waitFor();
  await press("Menu");
  await press("Sign out");
  const giveUp = () => page.getByRole("button", { name: "Give up 1 change and sign out" }).boundingBox();
  const before = await giveUp();
  await press("Send first");
  await page.getByText("The service did not answer. The changes are still on this device.").waitFor();
  expect(await giveUp(), "the button is now where the user has pressed another one").toEqual(before);
  // With the connection, the phone sends its last change. The sign-out then needs no answer from the user, and the sign-in page appears.
  await rep.context.setOffline(false);
  await page.getByLabel("Another user").waitFor();
  await chooseUser(page, team.viewer.email);
  await page.goto("/field");
  await upToDate(page);
  expect(await page.evaluate(DATABASES)).toHaveLength(1);
});

test("a user with more than 20 000 prospects gets a message, and the device keeps nothing", async () => {
  let total = 20_001;
  const viewer = await visit(browser(), team.viewer.email, "/users", screen);
  await viewer.context.route("**/api/prospects?pageSize=1", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), total } });
  });
  await viewer.page.goto("/field");
  await viewer.page
    .getByText("You see 20,001 prospects, and this device keeps at most 20,000. Use the map instead.")
    .waitFor();
  expect([await viewer.page.evaluate(DATABASES), viewer.paths.has("/api/changes")]).toEqual([[], false]);
  total = 20_000;
  await viewer.page.goto("/field");
  await titleOf(viewer.page).waitFor();
  await viewer.context.close();
});

test("a new copy is being downloaded, also if the device has the time of an earlier copy", async () => {
  const viewer = await visit(browser(), team.viewer.email, "/users", screen);
  const [config, me] = ["/config.json", "/api/me"].map(
    (path) => `fetch("${path}", ${JSON.stringify({ headers: FROM_CONSOLE })}).then((one) => one.json())`,
  );
  await viewer.page.evaluate(
    `Promise.all([${config}, ${me}]).then(([{ issuer }, { user }]) =>
      localStorage.setItem("canvassing-field " + issuer + " " + user.id + " contact", Date.now()))`,
  );
  await viewer.context.route("**/api/changes?*", (route) => route.abort());
  await viewer.page.goto("/field");
  await viewer.page.getByRole("status").getByText("Downloading …").waitFor();
  await viewer.page.getByText("Your doors are being downloaded.").waitFor();
  await viewer.context.close();
});

test("a deployment that switches the worker off removes it from the devices", async () => {
  const config = await (await page.request.get("/config.json")).json();
  await page.route("**/config.json", (route) => route.fulfill({ json: { ...config, offline: false } }));
  await page.goto("/field");
  const left = "navigator.serviceWorker.getRegistrations().then((all) => all.length)";
  await expect.poll(() => page.evaluate(left)).toBe(0);
  // Chromium sometimes leaves an empty cache while the service worker is being stopped. The next load of a page removes this cache.
  const kept = async () => {
    await page.reload();
    await titleOf(page).waitFor();
    return page.evaluate("caches.keys()");
  };
  await expect.poll(kept, soon).toEqual([]);
});
