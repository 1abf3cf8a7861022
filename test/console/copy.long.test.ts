/** Tests in a real browser that the copy of the field mode equals the service after damage, and at its largest size. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { at } from "#shared/at.ts";
import type { Team } from "../harness/team.ts";
import { listsOf } from "../offline/lists.ts";
import { copyOf, listsIn, loseRecord } from "./copy.ts";
import { newRep, screen, upToDate } from "./field-stage.ts";
import { browserForAll, visit } from "./visit.ts";

interface Item {
  readonly type: string;
  readonly data: object;
}

let team: Team;
let page: Page;
const browserOr = browserForAll(async (browser) => {
  const stage = await newRep(browser);
  team = stage.team;
  page = stage.rep.page;
});

const HOUR_MS = 3_600_000;
const asServiceShows = async () =>
  expect.poll(async () => listsIn(await copyOf(page))).toEqual(await listsOf(team.rep));

test("once a day, the phone compares its records with the service, and reads all anew if they differ", async () => {
  browserOr();
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

test("a user with 20 000 prospects has all of them on the device", async () => {
  const viewer = await visit(browserOr(), team.viewer.email, "/users", screen);
  await viewer.context.route("**/api/prospects?pageSize=1", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), total: 20_000 } });
  });
  await viewer.context.route("**/api/changes?*", async (route) => {
    const answer = await route.fetch();
    const { checksums: _, ...feed } = await answer.json();
    const items: Item[] = feed.items;
    const prospects = items.filter(({ type }) => type === "prospects");
    const more = Array.from({ length: prospects.length === 0 ? 0 : 20_000 - prospects.length }, (_, i) => {
      const [id, example] = [1e9 + i, at(prospects, 0)];
      return { ...example, id, data: { ...example.data, id } };
    });
    await route.fulfill({ response: answer, json: { ...feed, items: [...items, ...more] } });
  });
  await viewer.page.goto("/field");
  await expect.poll(async () => listsIn(await copyOf(viewer.page)).prospects?.length).toBe(20_000);
  await upToDate(viewer.page);
  await viewer.context.close();
});
