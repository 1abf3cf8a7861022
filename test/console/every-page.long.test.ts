/** Opens every page and dialog in four sizes and two colour schemes: the checker axe finds no fault, and all controls are on the screen. */
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { Scope } from "#shared/auth/scopes.ts";
import { newAccount, newKeyOf } from "../harness/api-key.ts";
import { faultsOf, openContext } from "../harness/browser.ts";
import { at, baseUrl, type Client, clientOf, clientWith } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { ringOf } from "../harness/rings.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, desktop, mapOf, type Visit, violationsOf, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
let rep: Visit;
const browser = browserForAll(async (opened) => {
  team = await newTeam();
  admin = await visit(opened, team.admin.email, "/users");
  rep = await visit(opened, team.rep.email, "/users");
});

const screens = [
  { width: 1440, height: 900 },
  { width: 1024, height: 720 },
  { width: 390, height: 740 },
  { width: 320, height: 640 },
] as const;

/** A page, a text that it shows when it has loaded its records, and the names of the buttons that each open one of its dialogs. */
type Stop = readonly [path: string, text: string | RegExp, ...dialogs: readonly (string | RegExp)[]];

interface Ids {
  readonly prospect: number;
  readonly territory: number;
  readonly webhook: number;
  readonly account: number;
}

const stopsOf = ({ prospect, territory }: Ids): readonly Stop[] => [
  ["/map", "1 prospect on the map", /^Filters/],
  ["/map?table=1", "1 prospect in this part of the map"],
  [`/map?prospect=${prospect}`, "New appointment"],
  ["/field", "Up to date", "Today", "Edit", "Find a door", "Up to date"],
  ["/prospects", "the newest first"],
  ["/prospects?sort=name&status=New", "Patricia", /^Filters/],
  ["/prospects?search=nothing", "No prospect matches"],
  [`/prospects?prospect=${prospect}`, "New appointment", "New appointment"],
  ["/territories", "Washington", "Type the corners"],
  [`/territories?territory=${territory}`, "1 prospect inside.", "Edit", "Delete"],
  [`/territories/${territory}/print`, "1 door on"],
  ["/activity?days=7", "Ravi Rep"],
  ["/files", "Download all prospects"],
  ["/users", "Vera Rep"],
  ["/nowhere", "This page does not exist"],
];

const stopsOfAdmins = ({ territory, webhook, account }: Ids): readonly Stop[] => [
  ["/prospects", "the newest first", /^Change all/],
  [`/territories?territory=${territory}`, "1 prospect inside.", /^Change the prospects/],
  ["/files", "Bulk change"],
  ["/webhooks", "Telephone system", "New webhook"],
  [
    `/webhooks/${webhook}`,
    "Send now",
    ...[/^Details of webhook.test/, "Send again …", "New secret …", "Delete", "Add a registration"],
    ...[/^Edit the registration for prospect.created/, /^Delete the registration for prospect.created/],
  ],
  ["/users", "Vera Rep", "Invite a user", "Edit Vera Rep"],
  // The page loads the list first and the times of the last use later, so the test waits for such a time.
  ["/service-accounts", /^now$| ago$/, "New service account"],
  [`/service-accounts/${account}`, "Replaced by", "New key", "Edit", "Delete", /^Rotate/, /^Revoke/, /^Take over/],
];

/** Makes a record for each page, with long names and values. The rep sees the prospect, because it is assigned to the rep. */
async function fill(): Promise<Ids> {
  const receiver = await startReceiver((_, response) =>
    // Retry-After postpones the second attempt until after this test.
    response.writeHead(500, { "Retry-After": "86400" }).end("out of order"),
  );
  onTestFinished(receiver.close);
  const filter = { "newStatus.value": ["Interested", "Appointment Set", "Sold"] };
  const registrations = [{ event: "prospect.created" }, { event: "prospect.status_changed", filter }];
  const office = { name: "Telephone system of the office", url: receiver.url, registrations };
  const webhook = dataOf(await team.admin.POST("/api/webhooks", { body: office }), 201);
  const [status] = dataOf(await team.admin.GET("/api/statuses"));
  const me = dataOf(await team.rep.GET("/api/me"));
  const body = {
    name: "Patricia Alexandra Longfellow-Underwood",
    emailAddress: "patricia.longfellow-underwood@long-names-of-companies.example",
    lat: 39.745,
    lng: -104.945,
    assignedToUserId: me.user.id,
    currentStatusId: status?.id ?? null,
  };
  const prospect = dataOf(await team.rep.POST("/api/prospects", { body }), 201);
  const polygon = ringOf("-104.96 39.74, -104.94 39.74, -104.94 39.76");
  const territory = dataOf(
    await team.admin.POST("/api/territories", { body: { name: "Washington Park", polygon } }),
    201,
  );
  const action = { set: { currentStatusId: status?.id ?? null } };
  dataOf(await team.admin.POST("/api/prospects/bulk", { body: { ids: [prospect.id], action, expectedCount: 1 } }), 202);
  dataOf(await team.admin.POST("/api/webhooks/{id}/test", { params: { path: { id: webhook.id } } }), 202);
  await receiver.until(2);
  const account = await accountWithKeys();
  return { prospect: prospect.id, territory: territory.id, webhook: webhook.id, account };
}

/** Makes a service account with three keys: one that is replaced, the key that replaces it, and one whose creator is no longer an admin. */
async function accountWithKeys(): Promise<number> {
  const { id } = await newAccount(team.admin, { name: "Nightly copy to the data warehouse" });
  const newKey = (client: Client) => newKeyOf(client, id, { scopes: Scope.options });
  const used = await newKey(team.admin);
  dataOf(await clientWith(async () => used.key).GET("/api/me"));
  const path = { params: { path: { id, keyId: used.id } } };
  const overlap = { body: { overlapSeconds: 86_400 } };
  dataOf(await team.admin.POST("/api/service-accounts/{id}/keys/{keyId}/rotate", { ...path, ...overlap }), 201);
  const email = team.owner.email.replace(/^owner@/, "leaving@");
  const person = { email, firstName: "Lea", lastName: "Leaving", role: "admin" } as const;
  const leaving = dataOf(await team.owner.POST("/api/users", { body: person }), 201);
  await newKey(clientOf(email));
  dataOf(await team.owner.PATCH("/api/users/{id}", { ...at(leaving.id), body: { role: "sales" } }));
  return id;
}

/** Returns the elements that are partly outside the screen, tables that scroll sideways, and controls in tables that cover each other. */
const misplaced = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const root = document.querySelector("dialog") ?? document.querySelector("main");
    const shown = (selector) => [...root.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    const box = (element) => element.getBoundingClientRect();
    const isOutside = (element) => box(element).width > 0 && (box(element).left < 0 || box(element).right > innerWidth);
    const covers = (one, other) =>
      box(one).left < box(other).right && box(other).left < box(one).right &&
      box(one).top < box(other).bottom && box(other).top < box(one).bottom;
    const inTables = shown("td button, td input, td a");
    return [
      ...shown("button, a, input, select, textarea, summary").filter(isOutside),
      ...shown("section[tabindex]").filter((frame) => frame.scrollWidth > frame.clientWidth),
      ...inTables.filter((one) => inTables.some((other) => other !== one && covers(one, other))),
    ]
      .map((element) => element.outerHTML.slice(0, 200))
      .concat(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []);
  })()`);

async function expectNoFaults(page: Page, what: string): Promise<void> {
  for (const screen of screens) {
    await page.setViewportSize(screen);
    const isPhone = screen.width < 800;
    if (isPhone) expect([what, screen.width, await misplaced(page)]).toEqual([what, screen.width, []]);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const found = await violationsOf(page);
      expect([what, screen.width, colorScheme, found]).toEqual([what, screen.width, colorScheme, []]);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(desktop);
}

async function go({ page, faults }: Visit, stops: readonly Stop[]): Promise<void> {
  for (const [path, text, ...dialogs] of stops) {
    await page.goto(path);
    const main = page.getByRole("main");
    await main.getByText(text).first().waitFor();
    if (new URL(path, "http://console.invalid").pathname === "/map") await mapOf(page);
    await expectNoFaults(page, path);
    for (const name of dialogs) {
      await main
        .getByRole("button", { name, exact: typeof name === "string" })
        .first()
        .click();
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      await dialog.getByText(/^Loading /).waitFor({ state: "detached" });
      await expectNoFaults(page, `${path}, ${name}`);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
  }
  expect(faults).toEqual([]);
}

test("every page and dialog has no fault that axe finds, and fits on phones", { timeout: 1_800_000 }, async () => {
  const ids = await fill();
  await go(rep, stopsOf(ids));
  await go(admin, [...stopsOf(ids), ...stopsOfAdmins(ids)]);
});

test("the sign-in page of the local service has no fault either, and its policy allows its style", async () => {
  const context = await openContext(browser(), { viewport: desktop, baseURL: baseUrl() });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const faults = faultsOf(page);
  await page.goto("/api/session/login?returnTo=%2F");
  await page.getByLabel("Another user").waitFor();
  expect(await page.evaluate("getComputedStyle(document.querySelector('main')).backgroundColor")).toBe(
    "rgb(255, 255, 255)",
  );
  await expectNoFaults(page, "the sign-in page");
  expect(faults).toEqual([]);
});
