/** Tests of the field mode in a real browser with the screen of a phone: what a rep does at a door, and the map of the doors. */
import type { Page, Request } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { statusIdOf, type Team } from "../harness/team.ts";
import { doorOf, newRep, oak, screen, statusesOf, titleOf, upToDate, walkTo } from "./field-stage.ts";
import { browserForAll, clustersOn, jumpTo, positionOf, soon, type Visit } from "./visit.ts";

let team: Team;
let rep: Visit;
let page: Page;
browserForAll(async (browser) => {
  ({ team, rep } = await newRep(browser));
  page = rep.page;
});

const door = () => doorOf(page);
const title = () => titleOf(page);
const dialog = () => page.getByRole("dialog");
const search = () => dialog().getByLabel("Address, name, phone, e-mail or note");
const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
const query = (text: string): Promise<unknown> => page.evaluate(text);

test("each status takes one tap, and the sheet then shows the next door on the same side of the street", async () => {
  await walkTo(page, "1 Elm St");
  for (const [status, next] of [
    ["Not Home", "3 Elm St"],
    ["Go Back", "5 Elm St"],
    ["Sold", "7 Elm St"],
  ] as const) {
    await press(status);
    await expect.poll(() => title().textContent()).toBe(next);
  }
  await expect
    .poll(() => statusesOf(team))
    .toEqual({ "1 Elm St": "Not Home", "3 Elm St": "Go Back", "5 Elm St": "Sold" });
  await press("Undo");
  await expect.poll(async () => (await statusesOf(team))["5 Elm St"]).toBeUndefined();
  await press("Today");
  expect(
    await dialog()
      .getByRole("button", { name: /Elm St/ })
      .allInnerTexts(),
  ).toEqual([expect.stringMatching(/^3 Elm St\s/)]);
  await press("Close");
  expect(rep.faults).toEqual([]);
});

test("the search finds doors of this device by the beginnings of words, in their addresses, names and phone numbers", async () => {
  await press("Find a door");
  await expect.poll(() => search().evaluate((element) => element.matches(":focus"))).toBe(true);
  const listed = async () => (await dialog().getByRole("listitem").allInnerTexts()).map((text) => text.split("\n")[0]);
  for (const [typed, found] of [
    ["elm 7", ["7 Elm St"]],
    ["ÓWNER of 9", ["9 Elm St"]],
    ["0100", ["1 Oak St, Unit 1", "1 Oak St, Unit 2"]],
    ["1303555", ["1 Oak St, Unit 1", "1 Oak St, Unit 2"]],
    ["oak@", ["1 Oak St, Unit 1", "1 Oak St, Unit 2"]],
    ["lm", []],
  ] as const) {
    await search().fill(typed);
    await expect.poll(async () => (await listed()).toSorted(), { message: typed }).toEqual(found);
  }
  await dialog().getByText("No door on this device has all these words.").waitFor();
  await search().fill("4 elm");
  await dialog().getByRole("button", { name: "4 Elm St" }).click();
  await expect.poll(() => title().textContent()).toBe("4 Elm St");
});

test("the sheet of another door begins at its top", async () => {
  await walkTo(page, "4 Elm St");
  await press("Make the sheet larger");
  await door().getByLabel("New note").scrollIntoViewIfNeeded();
  await page.setViewportSize({ width: screen.width, height: 400 });
  const content = door().locator(":scope > div");
  await content.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  expect(await content.evaluate((element) => element.scrollTop)).toBeGreaterThan(0);
  await press("Find a door");
  await search().fill("9 elm");
  await dialog().getByRole("button", { name: "9 Elm St" }).click();
  await expect.poll(() => title().textContent()).toBe("9 Elm St");
  expect(await content.evaluate((element) => element.scrollTop)).toBe(0);
  await page.setViewportSize(screen);
  await press("Make the sheet larger");
  await press("Make the sheet smaller");
});

test("an undo does not replace the status that somebody else has set, and a status that stays is no change", async () => {
  await walkTo(page, "9 Elm St");
  const nine = dataOf(await team.admin.GET("/api/prospects")).items.find(({ name }) => name === "Owner of 9");
  await press("Interested");
  await expect.poll(async () => (await statusesOf(team))["9 Elm St"]).toBe("Interested");
  const body = { currentStatusId: await statusIdOf(team.admin, "Sold") };
  dataOf(await team.admin.PATCH("/api/prospects/{id}", { ...at(present(nine).id), body }));
  await press("Undo");
  await page.getByText("9 Elm St is Sold meanwhile, so nothing was undone.").waitFor();
  expect((await statusesOf(team))["9 Elm St"]).toBe("Sold");
  await expect.poll(() => title().textContent()).toBe("9 Elm St");
  await press("Sold");
  await page.getByText("Sold: 9 Elm St. It had this status before.").waitFor();
  await upToDate(page);
});

test("a wide screen has the field mode as a choice", async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto("/users");
  await page.getByRole("link", { name: "Field mode" }).click();
  await title().waitFor();
  await page.setViewportSize(screen);
  await upToDate(page);
});

test("a browser that cannot draw maps shows the doors and the list all the same", async () => {
  const bare = await rep.context.newPage();
  await bare.addInitScript("HTMLCanvasElement.prototype.getContext = () => null");
  await bare.goto("/field");
  const sentence = bare.getByText("This browser cannot draw the map.");
  await sentence.waitFor();
  const before = await titleOf(bare).textContent();
  await bare.getByRole("button", { name: "Next door", exact: true }).click();
  await expect.poll(() => titleOf(bare).textContent()).not.toBe(before);
  await bare.setViewportSize({ width: 1280, height: 800 });
  await bare.goto("/");
  await sentence.waitFor();
  await bare.getByRole("link", { name: "Show as a list" }).click();
  await bare.getByRole("table").getByText("Owner of 7").waitFor();
  await bare.close();
});

test("the map fills the screen, the sheet has three heights, and everything is large enough for a finger", async () => {
  const map = "(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])(shownMap.getCanvas())";
  expect(await query(map)).toEqual([screen.width, screen.height]);
  const height = () => door().getAttribute("data-height");
  expect(await height()).toBe("peek");
  for (const [name, next] of [
    ["Make the sheet larger", "half"],
    ["Make the sheet larger", "full"],
    ["Make the sheet smaller", "peek"],
  ] as const) {
    await press(name);
    expect(await height()).toBe(next);
  }
  // The map library's buttons may be lower than 44 px, because a gesture of two fingers does the same as they do.
  const small = `[...document.querySelectorAll("main :is(button, a, textarea, input):not(.maplibregl-ctrl *)")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
    .map((one) => one.outerHTML.slice(0, 120))`;
  expect(await query(small)).toEqual([]);
  const texts = `[...document.querySelectorAll("main textarea, main input")].map((one) => parseFloat(getComputedStyle(one).fontSize))`;
  expect(z.array(z.number().check(z.minimum(16))).parse(await query(texts)).length).toBeGreaterThan(0);
});

test("the first eight statuses are buttons in their colours, and the others come after one more tap", async () => {
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
  // Each pin has the colour and the first letter of its status.
  const signs =
    "shownMap.getStyle().sources.doors.data.features.map(({ properties }) => properties.text + properties.color)";
  const expected = doors.map(({ currentStatus }) =>
    currentStatus === null ? "#9CA3AF" : `${currentStatus.value.slice(0, 1)}${currentStatus.color}`,
  );
  expect(await query(signs)).toEqual(expect.arrayContaining(expected));
  const drawnSigns = "shownMap.queryRenderedFeatures({ layers: ['door-texts'] }).length";
  await expect.poll(() => query(drawnSigns), soon).toBeGreaterThan(1);
});

test("my position is asked for at each press, also after it was denied, is followed with its accuracy, and is sent to nobody", async () => {
  const place = { latitude: 39.751234, longitude: -104.905678, accuracy: 40 };
  const sent: string[] = [];
  const listen = (request: Request) => sent.push(`${request.url()} ${request.postData() ?? ""}`);
  rep.context.on("request", listen);
  await query(
    "window.asked = 0; navigator.geolocation.watchPosition = ((watch) => (...all) => (asked++, watch.apply(navigator.geolocation, all)))(navigator.geolocation.watchPosition)",
  );
  expect(await query("asked")).toBe(0);
  const button = page.getByRole("button", { name: "My position" });
  const denied = page.getByText("This page may not use your position.");
  await button.click();
  await denied.waitFor();
  expect(await button.getAttribute("aria-pressed")).toBe("false");
  await rep.context.grantPermissions(["geolocation"]);
  await rep.context.setGeolocation(place);
  await button.click();
  expect(await query("asked")).toBe(2);
  const centre = "shownMap.getCenter().toArray().map((degrees) => degrees.toFixed(4))";
  await expect.poll(() => query(centre), soon).toEqual(["-104.9057", "39.7512"]);
  const kinds = "shownMap.getStyle().sources.me.data.features.map(({ geometry }) => geometry.type)";
  expect(await query(kinds)).toEqual(["Polygon", "Point"]);
  expect(await denied.count()).toBe(0);
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

test("a door can be added with a name and without an address", async () => {
  await jumpTo(page, [-104.96, 39.73], 17);
  await page.getByRole("region", { name: "Map of doors" }).click({ button: "right", position: { x: 200, y: 200 } });
  await dialog().getByLabel("Name").fill("Shed");
  for (const part of ["Street and number", "City", "State", "Postal code"]) await dialog().getByLabel(part).fill("");
  await press("Save");
  await expect.poll(() => title().textContent()).toBe("Shed");
  const shed = async () => dataOf(await team.admin.GET("/api/prospects")).items.filter(({ name }) => name === "Shed");
  await expect.poll(async () => (await shed()).map(({ address }) => address)).toEqual([null]);
  await upToDate(page);
});

test("an appointment takes two taps, is in the list of today, and can be moved and cancelled", async () => {
  // At 8 o'clock, all times that the dialog proposes for today are still in the future.
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
  const details = await Promise.all(items.map(({ id }) => team.admin.GET("/api/prospects/{id}", at(id))));
  const appointments = details.flatMap((answer) => dataOf(answer).appointments);
  expect(appointments.map((one) => [one.title, one.status])).toEqual([["Second visit", "cancelled"]]);
  await press("Today");
  await dialog().getByText("There is no appointment today.").waitFor();
  await press("Close");
});

test("the user changes all fields and the tags of a door", async () => {
  const [tag] = dataOf(await team.admin.GET("/api/tags"));
  const texts = {
    Name: "Olive",
    Phone: "555 0101",
    "Second phone": "555 0102",
    "E-mail": "olive@example.com",
    Unit: "Rear",
  };
  await press("Not Home");
  await press("Edit");
  const save = dialog().getByRole("button", { name: "Save", exact: true });
  await save.scrollIntoViewIfNeeded();
  const message = dialog()
    .getByRole("status")
    .getByText(/^Not Home: /);
  const [button, words] = [await save.boundingBox(), await message.boundingBox()];
  expect((button?.y ?? 0) + (button?.height ?? 0), "the message covers the button").toBeLessThanOrEqual(words?.y ?? 0);
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
