/** Tests in a real browser what can go wrong on a walk: double taps, closed tabs, long presses, doors where nobody may knock. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, statusIdOf, type Team } from "../harness/team.ts";
import { newDoor, screen, upToDate } from "./field-stage.ts";
import { browserForAll, jumpTo, positionOf, soon, type Visit, visit } from "./visit.ts";

let team: Team;
let rep: Visit;
let page: Page;
const browser = browserForAll(async (opened) => {
  team = await newTeam();
  const { user } = dataOf(await team.rep.GET("/api/me"));
  const never = await statusIdOf(team.admin, "Do Not Knock");
  for (const number of [1, 3, 5, 7]) {
    const currentStatusId = number === 3 ? never : null;
    await newDoor(team, user.id, number, { lng: -104.9 - number / 2_000, currentStatusId });
  }
  rep = await visit(opened, team.rep.email, "/field", screen);
  page = rep.page;
  await upToDate(page);
});

const title = () => page.getByRole("region", { name: "Door" }).getByRole("heading", { level: 2 }).textContent();
const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
const prospects = async () => dataOf(await team.admin.GET("/api/prospects")).items;
const sold = async () =>
  (await prospects()).flatMap(({ address, currentStatus }) =>
    currentStatus?.value === "Sold" ? address?.address1 : [],
  );

test("a double tap sets the status of one door, the walk leaves out Do Not Knock, and an opened tab goes on there", async () => {
  for (let i = 0; i < 4 && (await title()) !== "1 Elm St"; i++) await press("Next door");
  await page.getByRole("button", { name: "Sold", exact: true }).dblclick();
  await expect.poll(title).toBe("5 Elm St");
  await expect.poll(sold).toEqual(["1 Elm St"]);
  await upToDate(page);
  expect(await sold()).toEqual(["1 Elm St"]);
  await page.reload();
  await upToDate(page);
  expect(await title()).toBe("5 Elm St");
  await press("Next door");
  expect(await title()).toBe("7 Elm St");
  await press("Next door");
  await page.getByText("You have been at all doors.").waitFor();
});

test("the next door appears when this device has stored the status, and has the focus of a keyboard", async () => {
  const stored = page.evaluate(`(async () => {
    const answer = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const { name } = (await indexedDB.databases()).find(({ name }) => name.startsWith("canvassing-field"));
    const db = await answer(indexedDB.open(name));
    const title = () => document.querySelector("[aria-label='Door'] h2").textContent;
    const before = title();
    await new Promise((resolve) => {
      const look = () => title() !== before && resolve();
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
      window.isWatching = true;
    });
    const count = await answer(db.transaction("outbox").objectStore("outbox").count());
    db.close();
    return count;
  })()`);
  await expect.poll(() => page.evaluate("window.isWatching === true")).toBe(true);
  await rep.context.setOffline(true);
  const before = await title();
  // The buttons of a new door are disabled for a moment. If the test did not wait, the key would press the button that has the focus.
  await page.locator("fieldset:enabled").getByRole("button", { name: "Interested", exact: true }).press("Enter");
  expect(await stored).toBe(1);
  await expect.poll(title).not.toBe(before);
  await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe(await title());
  await rep.context.setOffline(false);
  await upToDate(page);
});

test("a link to a door opens it", async () => {
  const three = (await prospects()).find(({ address }) => address?.address1 === "3 Elm St");
  await page.goto(`/field?door=${encodeURIComponent(`prospects/${three?.id}`)}`);
  await upToDate(page);
  await expect.poll(title).toBe("3 Elm St");
  await expect.poll(() => new URL(page.url()).searchParams.has("door")).toBe(false);
});

test("Today lists the doors to which the rep goes back, the nearest first", async () => {
  const body = { currentStatusId: await statusIdOf(team.admin, "Go Back") };
  const byLine = Object.fromEntries((await prospects()).map(({ id, address }) => [address?.address1 ?? "", id]));
  for (const line of ["5 Elm St", "7 Elm St", "1 Elm St"]) {
    dataOf(await team.admin.PATCH("/api/prospects/{id}", { ...at(present(byLine[line])), body }));
  }
  for (const lines of [
    ["7 Elm St", "5 Elm St", "1 Elm St"],
    ["1 Elm St", "5 Elm St", "7 Elm St"],
  ]) {
    await page.goto(`/field?door=${encodeURIComponent(`prospects/${byLine[lines[0] ?? ""]}`)}`);
    await expect.poll(title).toBe(lines[0]);
    await press("Today");
    const listed = () =>
      page
        .getByRole("dialog")
        .getByRole("listitem")
        .getByText(/ Elm St/)
        .allTextContents();
    await expect.poll(async () => (await listed()).map((text) => text.slice(0, 8))).toEqual(lines);
    await press("Close");
  }
});

test("a long press on a pin opens its door, and makes no second one", async () => {
  await press("Next door");
  await expect.poll(title).not.toBe("3 Elm St");
  const three = (await prospects()).find(({ address }) => address?.address1 === "3 Elm St");
  const place = [three?.lng ?? 0, three?.lat ?? 0] as const;
  // The map still moves to the opened door, so the test waits until it rests.
  await expect.poll(() => page.evaluate("shownMap.isMoving()"), soon).toBe(false);
  await jumpTo(page, place, 17);
  const [x, y] = await positionOf(page, ...place);
  const pins = `shownMap.queryRenderedFeatures([${x}, ${y}], { layers: ['doors'] }).length`;
  await expect.poll(() => page.evaluate(pins), soon).toBe(1);
  await page.mouse.click(x, y, { button: "right" });
  await expect.poll(title).toBe("3 Elm St");
  expect(await page.getByRole("dialog").count()).toBe(0);
});

test("the draft of a new door keeps the place where it was begun, a double click saves it once, and a new draft begins elsewhere", async () => {
  const region = page.getByRole("region", { name: "Map of doors" });
  const pressAt = async (lng: number): Promise<void> => {
    await jumpTo(page, [lng, 39.72], 17);
    await region.click({ button: "right", position: { x: 200, y: 200 } });
  };
  const street = page.getByRole("dialog").getByLabel("Street and number");
  const sentence = page.getByRole("dialog").getByText("You have begun this draft at another place on the map.");
  await pressAt(-104.97);
  await street.fill("1 Barn Rd");
  await press("Close");
  await pressAt(-104.98);
  await sentence.waitFor();
  expect(await street.inputValue()).toBe("1 Barn Rd");
  await page.getByRole("button", { name: "Save", exact: true }).dblclick();
  await expect.poll(title).toBe("1 Barn Rd");
  await pressAt(-104.98);
  await street.fill("3 Mill Rd");
  await press("Discard the draft");
  await press("Close");
  await pressAt(-104.99);
  await street.fill("2 Mill Rd");
  expect(await sentence.count()).toBe(0);
  await press("Save");
  await expect.poll(title).toBe("2 Mill Rd");
  await upToDate(page);
  const made = (await prospects()).map(({ address, lng }) => [address?.address1, lng?.toFixed(2)]);
  expect(made.filter(([street]) => street?.endsWith("Rd")).toSorted()).toEqual([
    ["1 Barn Rd", "-104.97"],
    ["2 Mill Rd", "-104.99"],
  ]);
});

test("after a long press, the lift of the finger presses nothing in the dialog that has opened", async () => {
  await jumpTo(page, [-104.97, 39.72], 17);
  const region = page.getByRole("region", { name: "Map of doors" });
  await region.click({ button: "right", position: { x: 200, y: 300 } });
  const field = page.getByRole("dialog").getByLabel("Unit");
  const { x = 0, y = 0 } = (await field.boundingBox()) ?? {};
  const hasFocus = () => field.evaluate((element) => element.matches(":focus"));
  expect(await hasFocus()).toBe(false);
  await press("Close");
  const touch = await rep.context.newCDPSession(page);
  await touch.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: x + 20, y: y + 10 }] });
  await field.waitFor();
  await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  // The browser sends the click of a touch before it answers the next call, so the click has already happened.
  expect(await hasFocus()).toBe(false);
  await press("Close");
  // After a touch that the browser has cancelled, the next tap presses what it hits.
  await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: x + 20, y: y + 10 }] });
  await field.waitFor();
  await touch.send("Input.dispatchTouchEvent", { type: "touchCancel", touchPoints: [] });
  const close = (await page.getByRole("button", { name: "Close", exact: true }).boundingBox()) ?? { x: 0, y: 0 };
  await touch.send("Input.dispatchTouchEvent", {
    type: "touchStart",
    touchPoints: [{ x: close.x + 9, y: close.y + 9 }],
  });
  await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await touch.send("Emulation.setTouchEmulationEnabled", { enabled: false });
  await touch.detach();
});

test("without a connection, the page says so, also if nothing waits", async () => {
  // Without a connection, the code of the sign-out must come from the service worker, so the test waits for it.
  await page.evaluate("navigator.serviceWorker.ready");
  const places = () =>
    Promise.all(["Today", "Find a door"].map((name) => page.getByRole("button", { name }).boundingBox()));
  const before = await places();
  await rep.context.setOffline(true);
  await page.getByRole("status").getByText("Offline", { exact: true }).waitFor();
  expect(await places(), "the state moves the buttons beside it").toEqual(before);
  expect(await page.getByText("changes cannot be saved").count()).toBe(0);
  await press("Offline");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("This device last had everything on ").waitFor();
  await dialog.getByText("This device has no connection.").waitFor();
  await press("Close");
  await press("Menu");
  await press("Sign out");
  await page.getByText("You are still signed in").waitFor();
  const pages = page.getByRole("navigation", { name: "Pages" });
  await page.mouse.click(360, 400);
  await expect.poll(() => pages.isVisible()).toBe(false);
  await press("Menu");
  await expect.poll(() => pages.isVisible()).toBe(true);
  await page.keyboard.press("Escape");
  await expect.poll(() => pages.isVisible()).toBe(false);
  await rep.context.setOffline(false);
  await upToDate(page);
});

test("a page that loses its connection before or while it gets its service worker has it when the connection is back", async () => {
  const { context, page: other } = await visit(browser(), team.rep.email, "/field");
  await upToDate(other);
  await context.setOffline(true);
  // The page registers its service worker six seconds after its load. The test waits twice this time without a connection.
  await expect.poll(() => other.evaluate("performance.now() > 12_000"), soon).toBe(true);
  expect((await other.getByRole("alert").allInnerTexts()).join("")).toBe("");
  // The first attempt fails like one whose connection breaks during the download of the files.
  await other.evaluate(`(() => {
    const { prototype } = ServiceWorkerContainer;
    const { register } = prototype;
    prototype.register = async () => {
      prototype.register = register;
      return { installing: { state: "redundant" } };
    };
  })()`);
  await context.setOffline(false);
  await other.evaluate("navigator.serviceWorker.ready");
  await context.close();
});
