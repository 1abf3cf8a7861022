/** Tests of the field mode in a real browser with the screen of a phone: doors, changes without a connection, and what stays on the device. */
import type { BrowserContext, Page, Request } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, chooseUser, clustersOn, jumpTo, positionOf, soon, type Visit, visit } from "./visit.ts";

const screen = { width: 390, height: 780 };
/** The place of a building with two units. */
const oak = [-104.93, 39.76] as const;
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
  for (const unit of ["Unit 1", "Unit 2"]) {
    const place = { lat: oak[1], lng: oak[0], address: { ...address, address1: "1 Oak St", address2: unit } };
    const contact = { phoneNumber: "+1 303 555 0100", emailAddress: "oak@example.com" };
    dataOf(await team.admin.POST("/api/prospects", { body: { ...place, ...contact, assignedToUserId: user.id } }), 201);
  }
  for (const value of ["Renter", "Moved"]) {
    dataOf(await team.admin.POST("/api/statuses", { body: { value, color: "#123456" } }), 201);
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
const door = (at: Page = page) => at.getByRole("region", { name: "Door", exact: true });
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
  const sentence = page.getByText("Safari deletes what waits");
  const opened = async () => {
    await page.getByText("The data on this device takes").waitFor();
    const count = await sentence.count();
    await press("Close");
    return count;
  };
  await page.evaluate(`window.matchMedia = ((real) => (query) =>
    query === "(display-mode: standalone)" ? { matches: true } : real(query))(matchMedia); 0`);
  await page.getByRole("status").getByText("1 waiting").click();
  expect(await opened(), "the page is installed").toBe(0);
  await rep.context.setOffline(false);
  await upToDate(page);
  await page.reload();
  await upToDate(page);
  await page.evaluate(`Object.defineProperty(navigator, "userAgent", { value: ${JSON.stringify(safari)} })`);
  await page.getByRole("status").getByText("Up to date").click();
  expect(await opened(), "nothing waits").toBe(0);
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

const query = (text: string): Promise<unknown> => page.evaluate(text);
const dialog = () => page.getByRole("dialog");

test("the map fills the screen, the sheet has three heights, and everything is large enough for a finger", async () => {
  browserOr();
  const map = "(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])(shownMap.getCanvas())";
  expect(await query(map)).toEqual([screen.width, screen.height]);
  const height = () => door().getAttribute("data-height");
  expect(await height()).toBe("peek");
  for (const [name, next] of [
    ["Make the sheet larger", "half"],
    ["Make the sheet larger", "full"],
    ["Make the sheet smaller", "peek"],
    ["Make the sheet larger", "half"],
  ] as const) {
    await press(name);
    expect(await height()).toBe(next);
  }
  // The buttons of the map library do what a gesture of two fingers does.
  const small = `[...document.querySelectorAll("main :is(button, a, textarea, input):not(.maplibregl-ctrl *)")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
    .map((one) => one.outerHTML.slice(0, 120))`;
  expect(await query(small)).toEqual([]);
  const texts = `[...document.querySelectorAll("main textarea, main input")].map((one) => parseFloat(getComputedStyle(one).fontSize))`;
  expect(z.array(z.number().check(z.minimum(16))).parse(await query(texts)).length).toBeGreaterThan(0);
});

test("the first eight statuses are buttons in their colours, and the others come after one more tap", async () => {
  browserOr();
  const active = dataOf(await team.admin.GET("/api/statuses")).filter(({ isActive }) => isActive);
  expect(active.length).toBeGreaterThan(8);
  const buttons = page.getByRole("group", { name: "Status" }).getByRole("button");
  const names = active.map(({ value }) => value);
  expect(await buttons.allInnerTexts()).toEqual([...names.slice(0, 8), "More …"]);
  const colour = ({ color }: { color: string }) =>
    `rgb(${[1, 3, 5].map((i) => Number.parseInt(color.slice(i, i + 2), 16)).join(", ")})`;
  const marks =
    "[...document.querySelectorAll('fieldset button > span')].map((one) => getComputedStyle(one).backgroundColor)";
  expect(await query(marks)).toEqual(active.slice(0, 8).map(colour));
  await press("More …");
  expect(await buttons.allInnerTexts()).toEqual(names);
});

test("units of a building are one pin with a list, a finger may miss it by 20 pixels, and a unit has its links", async () => {
  browserOr();
  const [lng, lat] = oak;
  await jumpTo(page, oak, 17);
  const pin =
    "shownMap.queryRenderedFeatures({ layers: ['doors'] }).map(({ properties: { text, color } }) => [text, color])";
  await expect.poll(() => query(pin), soon).toEqual([["2", "#9CA3AF"]]);
  const [x, y] = await positionOf(page, lng, lat);
  await page.mouse.click(x + 20, y);
  await dialog().getByRole("button", { name: "1 Oak St, Unit 2" }).click();
  await expect.poll(() => title().textContent()).toBe("1 Oak St, Unit 2");
  const links = door().getByRole("navigation", { name: "Contact" }).getByRole("link");
  const hrefs = await links.evaluateAll((all) => all.map((one) => one.getAttribute("href")));
  expect(hrefs.map((href) => href?.split("?")[0])).toEqual([
    ...["tel:+1 303 555 0100", "sms:+1 303 555 0100", "mailto:oak@example.com"],
    "https://www.google.com/maps/dir/",
  ]);
  expect(hrefs.at(-1)).toContain(`destination=${lat},${lng}`);
});

test("from afar, the doors are donuts of their statuses, and a pin alone stays a pin", async () => {
  browserOr();
  await jumpTo(page, [-104.915, 39.755], 12);
  const doors = dataOf(await team.admin.GET("/api/prospects")).items.filter(
    ({ address }) => address?.address1 !== "1 Oak St",
  );
  await expect.poll(() => clustersOn(page), soon).toEqual([doors.length]);
  const icon = String(await query("shownMap.getStyle().sources.clusters.data.features[0].properties.icon"));
  const colours = new Set(doors.map(({ currentStatus }) => currentStatus?.color ?? "#9CA3AF"));
  for (const colour of colours) expect(icon).toContain(colour);
  const pins = "shownMap.queryRenderedFeatures({ layers: ['doors'] }).length";
  await expect.poll(() => query(pins), soon).toBe(1);
  await jumpTo(page, [-104.9005, 39.75], 17);
  await expect.poll(() => clustersOn(page), soon).toEqual([]);
  await expect.poll(() => query(pins), soon).toBeGreaterThan(1);
});

test("my position is asked for when it is used, is followed with its accuracy, and is sent to nobody", async () => {
  browserOr();
  const place = { latitude: 39.751234, longitude: -104.905678, accuracy: 40 };
  const sent: string[] = [];
  const listen = (request: Request) => sent.push(`${request.url()} ${request.postData() ?? ""}`);
  rep.context.on("request", listen);
  await query(
    "window.asked = 0; navigator.geolocation.watchPosition = ((watch) => (...all) => (asked++, watch.apply(navigator.geolocation, all)))(navigator.geolocation.watchPosition)",
  );
  await rep.context.grantPermissions(["geolocation"]);
  await rep.context.setGeolocation(place);
  expect(await query("asked")).toBe(0);
  const button = page.getByRole("button", { name: "My position" });
  await button.click();
  expect(await query("asked")).toBe(1);
  const centre = "shownMap.getCenter().toArray().map((degrees) => degrees.toFixed(4))";
  await expect.poll(() => query(centre), soon).toEqual(["-104.9057", "39.7512"]);
  const kinds = "shownMap.getStyle().sources.me.data.features.map(({ geometry }) => geometry.type)";
  expect(await query(kinds)).toEqual(["Polygon", "Point"]);
  expect(await button.getAttribute("aria-pressed")).toBe("true");
  await page.mouse.move(200, 300);
  await page.mouse.down();
  await page.mouse.move(260, 360, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => button.getAttribute("aria-pressed")).toBe("false");
  await press("Next door");
  await press("Not Home");
  await expect.poll(() => sent.some((text) => text.includes("/api/sync/operations"))).toBe(true);
  await upToDate(page);
  rep.context.off("request", listen);
  expect(sent.filter((text) => /39\.7512|104\.9056/.test(text))).toEqual([]);
});

test("the page asks the browser to keep its data, says whether it does, and offers to install itself", async () => {
  browserOr();
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
  browserOr();
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

test("an appointment takes two taps, is in the list of today, and can be moved and cancelled", async () => {
  browserOr();
  // On this day, all usual times of the day are still to come.
  const morning = new Date(Date.now() - 86_400_000).setHours(8, 0, 0, 0);
  await page.clock.setFixedTime(morning);
  await press("Next door");
  const place = await title().textContent();
  await press("Appointment");
  await dialog().getByRole("button", { name: "Today" }).first().click();
  const own = door().getByRole("region", { name: "Appointments" });
  await own.getByRole("button", { name: "Move" }).click();
  await dialog().getByLabel("Title").fill("Second visit");
  await press("Save");
  await own.getByText(/^Second visit, /).waitFor();
  await press("Today");
  await dialog()
    .getByRole("button", { name: `Second visit, ${place}` })
    .click();
  expect(await title().textContent()).toBe(place);
  await own.getByRole("button", { name: "Cancel" }).click();
  await own.getByText("Second visit").waitFor({ state: "detached" });
  await upToDate(page);
  const { items } = dataOf(await team.admin.GET("/api/prospects"));
  const details = await Promise.all(
    items.map(({ id }) => team.admin.GET("/api/prospects/{id}", { params: { path: { id } } })),
  );
  const appointments = details.flatMap((answer) => dataOf(answer).appointments);
  expect(appointments.map((one) => [one.title, one.status])).toEqual([["Second visit", "cancelled"]]);
  await press("Today");
  await dialog().getByText("There is no appointment today.").waitFor();
  await press("Close");
});

test("the user changes all fields and the tags of a door", async () => {
  browserOr();
  const [tag] = dataOf(await team.admin.GET("/api/tags"));
  const texts = {
    Name: "Olive",
    Phone: "555 0101",
    "Second phone": "555 0102",
    "E-mail": "olive@example.com",
    Unit: "Rear",
  };
  await press("Edit");
  for (const [label, text] of Object.entries(texts)) await dialog().getByLabel(label, { exact: true }).fill(text);
  const address1 = await dialog().getByLabel("Street and number").inputValue();
  if (tag !== undefined) await dialog().getByLabel(tag.value).check();
  await press("Save");
  await dialog().waitFor({ state: "detached" });
  await upToDate(page);
  const found = dataOf(await team.admin.GET("/api/prospects")).items.find(({ name }) => name === "Olive");
  expect(found).toMatchObject({
    ...{ phoneNumber: "555 0101", secondaryPhoneNumber: "555 0102", emailAddress: "olive@example.com" },
    address: { address1, address2: "Rear" },
    tags: tag === undefined ? [] : [{ tag: { id: tag.id } }],
  });
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
