/** Tests in a real browser that the field mode's copy equals the service after a change of role, after damage, and at its largest size. */
import type { Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import { at } from "#shared/at.ts";
import { FROM_CONSOLE } from "../harness/browser-session.ts";
import { dataOf } from "../harness/shapes.ts";
import type { Team } from "../harness/team.ts";
import { listsOf } from "../offline/lists.ts";
import { copyOf, listsIn, loseRecord } from "./copy.ts";
import { newDoor, newRep, screen, statusesOf, upToDate, walkTo } from "./field-stage.ts";
import { browserForAll, soon, visit } from "./visit.ts";

interface Item {
  readonly type: string;
  readonly data: object;
}

let team: Team;
let page: Page;
const browser = browserForAll(async (opened) => {
  const stage = await newRep(opened);
  team = stage.team;
  page = stage.rep.page;
});

const HOUR_MS = 3_600_000;
const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
// A function of the service may use the user's old role for up to a minute, so each attempt also reads the lists of the service again.
const asServiceShows = () =>
  vi.waitFor(async () => expect(listsIn(await copyOf(page))).toEqual(await listsOf(team.rep)), soon);

async function changeRole(role: "admin" | "sales"): Promise<void> {
  const { user } = dataOf(await team.rep.GET("/api/me"));
  dataOf(await team.owner.PATCH("/api/users/{id}", { params: { path: { id: user.id } }, body: { role } }));
  // The service may use the old role of the phone's session for up to a minute, so the test waits for the new role.
  const roleOfSession = async (): Promise<unknown> => {
    const answer = await page.request.get("/api/me", { headers: FROM_CONSOLE });
    return (await answer.json()).role;
  };
  await expect.poll(roleOfSession, soon).toBe(role);
}

/** Returns the reason with which the service refuses the cursor of the phone. */
async function refusal(): Promise<unknown> {
  const response = await page.waitForResponse((one) => one.url().includes("/api/changes") && one.status() === 410);
  return (await response.json()).reason;
}

test("changes that wait survive a change of the role, and the phone then has what the new role sees", async () => {
  const context = page.context();
  await newDoor(team, null, 2);
  await context.setOffline(true);
  await walkTo(page, "1 Elm St");
  await press("Sold");
  await walkTo(page, "5 Elm St");
  await page.getByLabel("New note").fill("Asks for the admin");
  await press("Add note");
  await page.getByRole("status").getByText("Offline, 2 waiting").waitFor();
  await changeRole("admin");
  const larger = refusal();
  await context.setOffline(false);
  expect(await larger).toBe("scope_changed");
  await asServiceShows();
  expect(listsIn(await copyOf(page)).notes).toMatchObject([{ body: "Asks for the admin" }]);
  expect(await statusesOf(team)).toMatchObject({ "1 Elm St": "Sold" });

  // As a sales user again, the rep no longer sees the door 2 Elm St.
  await upToDate(page);
  await context.setOffline(true);
  for (const address1 of ["2 Elm St", "3 Elm St"]) {
    await walkTo(page, address1);
    await press("Interested");
  }
  await page.getByRole("status").getByText("Offline, 2 waiting").waitFor();
  await changeRole("sales");
  const smaller = refusal();
  await context.setOffline(false);
  expect(await smaller).toBe("scope_changed");
  await page.getByRole("button", { name: "1 change needs your decision" }).click();
  await asServiceShows();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("A door that you no longer see").waitFor();
  await dialog.getByText("Status: Interested").waitFor();
  await press("Give up");
  await dialog.getByText("Nothing is waiting.").waitFor();
  await press("Close");
  await upToDate(page);
  expect(await statusesOf(team)).toEqual({ "1 Elm St": "Sold", "3 Elm St": "Interested" });
  const { generation, waiting, records } = await copyOf(page);
  expect(waiting).toBe(0);
  expect(new Set(records.map((record) => record.generation))).toEqual(new Set([generation]));
});

test("once a day, the phone compares its records with the service, and reads all anew if they differ", async () => {
  const asked: boolean[] = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === "/api/changes") asked.push(searchParams.get("checksum") === "true");
  });
  const begun = Date.now();
  const openAfter = async (hours: number): Promise<boolean[]> => {
    asked.length = 0;
    await page.clock.setFixedTime(begun + hours * HOUR_MS);
    const answer = page.waitForResponse((response) => response.url().includes("/api/changes"));
    await page.reload();
    await answer;
    return asked;
  };
  const { generation, records } = await copyOf(page);
  const [lost = expect.fail("the phone has no record")] = records.filter(({ type }) => type === "prospects");
  await loseRecord(page, "prospects", lost.id);
  expect(await openAfter(23)).toEqual([false]);
  expect(await openAfter(25)).toContain(true);
  await asServiceShows();
  expect(await copyOf(page)).toMatchObject({ generation: generation + 1 });
  expect(asked.slice(0, 3)).toEqual([true, true, false]);
  expect(await openAfter(48)).toEqual([false]);
  expect(await openAfter(50)).toEqual([true]);
  await asServiceShows();
  expect(await copyOf(page)).toMatchObject({ generation: generation + 1 });
});

test("a user with 20 000 prospects has all of them on the device, and no more are added", async () => {
  const viewer = await visit(browser(), team.viewer.email, "/users", screen);
  let last: Item | undefined;
  const additions: number[] = [];
  await viewer.context.route("**/api/prospects?pageSize=1", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), total: 20_000 } });
  });
  await viewer.context.route("**/api/changes?*", async (route) => {
    const answer = await route.fetch();
    const { checksums: _, ...feed } = await answer.json();
    const items: Item[] = feed.items;
    const prospects = items.filter(({ type }) => type === "prospects");
    last = prospects.at(-1) ?? last;
    const length = prospects.length === 0 ? additions.length : 20_000 - prospects.length;
    const more = Array.from({ length }, (_, i) => {
      const id = prospects.length === 0 ? at(additions, i) : 1e9 + i;
      return { ...last, id, data: { ...last?.data, id } };
    });
    await route.fulfill({ response: answer, json: { ...feed, items: [...items, ...more] } });
  });
  await viewer.page.goto("/field");
  await expect.poll(async () => listsIn(await copyOf(viewer.page)).prospects?.length).toBe(20_000);
  await upToDate(viewer.page);
  additions.push(2e9);
  await viewer.page.reload();
  await viewer.page.getByRole("button", { name: "Not up to date" }).click();
  await viewer.page.getByText("You see more prospects, and this device keeps at most 20,000.").waitFor();
  expect(listsIn(await copyOf(viewer.page)).prospects?.length).toBe(20_000);
  await viewer.context.close();
});
