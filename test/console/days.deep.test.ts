/**
 * Tests that the field mode loses nothing and does nothing twice on random days of a rep with two phones in real browsers. The network is
 * cut and answers are lost at random. Tabs are closed, and the rep signs out. In the evening, each phone must show what the service has,
 * and the service must have each change once.
 */
import type { BrowserContext, Page, Route } from "playwright-core";
import { expect, inject, test } from "vitest";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";
import { copyOf } from "./copy.ts";
import { doorOf, newDoor, upToDate } from "./field-stage.ts";
import { browserForAll, chooseUser, jumpTo, visit } from "./visit.ts";

const screen = { width: 320, height: 568 };
const STATUSES = ["Not Home", "Go Back", "Interested", "Sold"] as const;
const STEPS = 12;
const TABS = 2;
/** Matches the calls with which the field mode syncs. It matches no page or file of the console, so these always load. */
const API = /\/api\/(?:changes|sync)/;

const DAYS = sized({ short: 10, wide: 200 });
/** If DAY_SEED is set, only the day with this seed runs, so that a failed day can be repeated. */
const only = process.env.DAY_SEED;
const days =
  only === undefined ? Array.from({ length: DAYS }, (_, day) => (inject("seed") + day) >>> 0) : [Number(only)];

const browser = browserForAll(async () => undefined);
let team: Team;
let phones: readonly Phone[] = [];
let made: Made;

test.for([...days.entries()])(
  "after the random day %i with a bad connection, both phones and the service have the same, and each change once",
  { tags: "sized" },
  async ([day, seed]) => {
    console.info(`DAY_SEED=${seed}`);
    if (day % 10 === 0) await beginWithNewPhones();
    const random = randomSequence(seed);
    const pick = <T>(items: readonly T[]): T => at(items, Math.floor(random() * items.length));
    for (let step = 0; step < STEPS; step++) {
      const phone = pick(phones);
      const act = pick([press, press, press, note, add, cut, cut, lose, close, begin, leave]);
      if (phone.tabs.length === 0) await open(phone);
      else await act({ phone, page: pick(phone.tabs), name: `${seed}-${step}`, random });
    }
    await evening();
    await compare();
  },
);

interface Phone {
  readonly context: BrowserContext;
  readonly email: string;
  tabs: Page[];
  isOffline: boolean;
  /** Number of the next answers that the phone will not receive, although the service has executed the requests. */
  lost: number;
}

interface Made {
  /** The statuses that each phone has set last, by the first line of the door's address. */
  readonly statuses: Map<string, Map<Phone, string>>;
  readonly notes: string[];
  readonly doors: string[];
}

async function beginWithNewPhones(): Promise<void> {
  for (const { context } of phones) await context.close();
  made = { statuses: new Map(), notes: [], doors: [] };
  team = await newTeam();
  const { user } = dataOf(await team.rep.GET("/api/me"));
  for (const number of [1, 3, 5, 7, 2, 4]) await newDoor(team, user.id, number);
  phones = await Promise.all([newPhone(), newPhone()]);
}

async function newPhone(): Promise<Phone> {
  const { email } = team.rep;
  const { context, page } = await visit(browser(), email, "/field", screen);
  const phone: Phone = { context, email, tabs: [page], isOffline: false, lost: 0 };
  await context.route(API, (route) => answerOrLose(phone, route));
  await upToDate(page);
  // An active service worker has stored the page and its files, so the page also opens without a connection.
  await page.evaluate("navigator.serviceWorker.ready");
  return phone;
}

async function answerOrLose(phone: Phone, route: Route): Promise<void> {
  if (phone.lost === 0) return route.continue();
  phone.lost -= 1;
  await route.fetch().catch(() => undefined);
  await route.abort().catch(() => undefined);
}

const titleOf = async (page: Page) => (await doorOf(page).getByRole("heading", { level: 2 }).textContent()) ?? "";

interface Step {
  readonly phone: Phone;
  readonly page: Page;
  /** A text that no other step of any day has. */
  readonly name: string;
  readonly random: () => number;
}

async function press({ phone, page, random }: Step): Promise<void> {
  const title = await titleOf(page);
  const status = at(STATUSES, Math.floor(random() * STATUSES.length));
  await doorOf(page).getByRole("button", { name: status, exact: true }).click();
  // A second press of the same status within some seconds shows the same text twice, so the test waits for the last one.
  await page.getByRole("status").getByText(`${status}: ${title}.`).last().waitFor();
  const ofDoor = made.statuses.get(title) ?? new Map<Phone, string>();
  made.statuses.set(title, ofDoor.set(phone, status));
}

async function note({ page, name }: Step): Promise<void> {
  const sheet = doorOf(page);
  await sheet.getByLabel("New note").fill(name);
  await sheet.getByRole("button", { name: "Add note" }).click();
  await sheet.getByRole("list", { name: "Notes" }).getByText(name, { exact: true }).waitFor();
  made.notes.push(name);
  await sheet.getByRole("button", { name: "Next door" }).click();
}

async function add({ page, name, random }: Step): Promise<void> {
  // A long press on a door would open it, so the map first moves to a place without doors.
  await page.locator("[data-ready='true']").waitFor();
  await jumpTo(page, [-110 + 10 * random(), 35 + 10 * random()], 17);
  await page.getByRole("region", { name: "Map of doors" }).click({ button: "right", position: { x: 200, y: 200 } });
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Street and number").fill(name);
  await dialog.getByRole("button", { name: "Save" }).click();
  // If the dialog does not close, the error of this expectation shows the dialog's text, which says why.
  await expect.poll(() => dialog.allInnerTexts()).toEqual([]);
  made.doors.push(name);
}

async function cut({ phone }: Step): Promise<void> {
  phone.isOffline = !phone.isOffline;
  await phone.context.setOffline(phone.isOffline);
}

async function lose({ phone }: Step): Promise<void> {
  phone.lost = 2;
}

async function close({ phone, page }: Step): Promise<void> {
  await page.close();
  phone.tabs = phone.tabs.filter((tab) => tab !== page);
}

async function begin({ phone }: Step): Promise<void> {
  if (phone.tabs.length < TABS) await open(phone);
}

/** Sends the waiting changes, signs out, which deletes the copy on the phone, and signs in again. */
async function leave({ phone, page }: Step): Promise<void> {
  if (phone.isOffline) return;
  phone.lost = 0;
  await sync(page, "send before the sign-out");
  for (const tab of phone.tabs) if (tab !== page) await tab.close();
  phone.tabs = [page];
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Another user").waitFor();
  await page.goto("/api/session/login?returnTo=/field");
  await chooseUser(page, phone.email);
  await upToDate(page);
}

async function open(phone: Phone): Promise<void> {
  const page = await phone.context.newPage();
  await page.goto("/field");
  await doorOf(page).getByRole("heading", { level: 2 }).waitFor();
  phone.tabs = [...phone.tabs, page];
}

/** Connects all phones, which then send their changes at the same time, and lets each phone read what the other one has sent. */
async function evening(): Promise<void> {
  const wake = async (phone: Phone) => {
    Object.assign(phone, { isOffline: false, lost: 0 });
    await phone.context.setOffline(false);
    if (phone.tabs.length === 0) await open(phone);
  };
  await Promise.all(phones.map(wake));
  for (const round of ["send", "read"]) await Promise.all(phones.map(({ tabs }) => sync(at(tabs, 0), round)));
}

async function sync(page: Page, round: string): Promise<void> {
  await page.locator("[data-failed]").click();
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: "Send and load now" });
  const mine = dialog.getByRole("button", { name: "Use mine" });
  const look = async (): Promise<boolean> => {
    // If the other phone has changed the same door, the dialog asks which change remains. The test lets the change of this phone remain.
    if (await mine.first().isVisible()) await mine.first().click();
    await button.click();
    await button.waitFor();
    return dialog.getByText("Nothing is waiting.").isVisible();
  };
  await expect.poll(look, { message: `the phone can ${round}` }).toBe(true);
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await upToDate(page);
}

const Shown = z.object({
  id: z.number(),
  updatedAt: z.string(),
  name: z.nullable(z.string()),
  currentStatus: z.nullable(z.object({ id: z.number(), value: z.string() })),
});
async function compare(): Promise<void> {
  const { items, total } = dataOf(await team.rep.GET("/api/prospects", { params: { query: { pageSize: 500 } } }));
  expect(items).toHaveLength(total);
  const byId = (a: { id: number }, b: { id: number }) => a.id - b.id;
  const expected = items.map((item) => Shown.parse(item)).sort(byId);
  for (const { tabs } of phones) {
    const { waiting, records } = await copyOf(at(tabs, 0));
    const prospects = records.filter(({ type }) => type === "prospects").map(({ data }) => Shown.parse(data));
    expect(waiting).toBe(0);
    expect(prospects.sort(byId)).toEqual(expected);
  }
  const titles = items.map(({ address }) => address?.address1 ?? "");
  expect(titles.filter((title) => made.doors.includes(title)).sort()).toEqual(made.doors.toSorted());
  for (const { address, currentStatus } of items) {
    const set = made.statuses.get(address?.address1 ?? "");
    if (set !== undefined) expect([...set.values()], address?.address1).toContain(currentStatus?.value);
  }
  const notes = [];
  for (const { id } of items) {
    // A prospect shows only its newest five notes.
    const found = dataOf(await team.rep.GET("/api/prospects/{id}/notes", { params: { path: { id } } }));
    notes.push(...found.map(({ body }) => body));
  }
  expect(notes.sort()).toEqual(made.notes.toSorted());
}
