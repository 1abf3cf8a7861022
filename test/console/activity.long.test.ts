/** Tests the charts of the page Activity in a real browser. They must show the same numbers as the API. */
import { randomUUID } from "node:crypto";
import type { Request } from "playwright-core";
import { expect, test } from "vitest";
import { clientOf } from "../harness/client.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, type Visit, violationsOf, visit } from "./visit.ts";

const DAY_MS = 86_400_000;

let team: Team;
let admin: Visit;
const browser = browserForAll(async (opened) => {
  team = await newTeam();
  await changeStatuses();
  admin = await visit(opened, team.owner.email, "/activity?days=7");
});

/** Creates twelve users. User N creates N prospects with a status, which counts as a status change, within the last seven days. */
async function changeStatuses(): Promise<void> {
  const statuses = dataOf(await team.owner.GET("/api/statuses"));
  for (let user = 1; user <= 12; user++) {
    const email = team.owner.email.replace(/^owner@/, `user${user}@`);
    const body = { email, firstName: `User${user}`, lastName: "Rep", role: "sales" } as const;
    dataOf(await team.owner.POST("/api/users", { body }), 201);
    const operations = Array.from({ length: user }, (_, index) => ({
      type: "prospect.create" as const,
      opId: randomUUID(),
      clientRecordId: randomUUID(),
      fields: { name: "Ann", currentStatusId: present(statuses[index % 3]).id },
      occurredAt: new Date(Date.now() - (index % 7) * DAY_MS).toISOString(),
    }));
    const { results } = dataOf(
      await clientOf(email).POST("/api/sync/operations", { body: { deviceId: "phone", operations } }),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(operations.map(() => "applied"));
  }
  dataOf(await team.owner.POST("/api/prospects", { body: { name: "Nobody" } }), 201);
}

/** The time zone of this machine and of its browser. The console counts days in it, so the test requests the expected counts with it. */
const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
function datesOf(days: number): string[] {
  const first = Date.parse(new Intl.DateTimeFormat("en-CA").format(Date.now())) - (days - 1) * DAY_MS;
  return Array.from({ length: days }, (_, day) => new Date(first + day * DAY_MS).toISOString().slice(0, 10));
}

/** Returns each user's number of status changes on the date, by the name of the user. */
async function changesByUser(date: string): Promise<Map<string, number>> {
  const query = { from: date, to: date, groupBy: "user", timezone } as const;
  const { items } = dataOf(await team.owner.GET("/api/reports/activity", { params: { query } }));
  return new Map(items.map(({ user, statusChanges }) => [`${user?.firstName} ${user?.lastName}`, statusChanges]));
}

const panel = (name: string) => {
  const { page } = admin;
  return page.locator("section").filter({ has: page.getByRole("heading", { name }) });
};
const shown = (date: string): string =>
  new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" }).format(Date.parse(date));
const table = (label: string) => admin.page.getByRole("region", { name: label }).locator("tbody tr");
const cellsOf = (rows: readonly string[]): string[][] => rows.map((row) => row.split(/\s*[\t\n]\s*/));

test("shows the status changes of ten users on each day, and of the others together", async () => {
  const { page } = admin;
  const label = "Status changes of each user";
  const lines = page.getByRole("list", { name: label }).getByRole("listitem");
  await lines.first().waitFor();
  const dates = datesOf(7);
  const days = await Promise.all(dates.map(changesByUser));
  const countsOf = (name: string): number[] => days.map((day) => day.get(name) ?? 0);
  const sumOf = (counts: readonly number[]): number => counts.reduce((sum, one) => sum + one, 0);
  const named = [12, 11, 10, 9, 8, 7, 6, 5, 4, 3].map((user) => `User${user} Rep`);
  const others = days.map((day) => (day.get("User1 Rep") ?? 0) + (day.get("User2 Rep") ?? 0));
  const expected = [
    ...named.map((name) => ({ name, counts: countsOf(name) })),
    { name: "2 other users", counts: others },
  ];
  expect(expected.map(({ counts }) => sumOf(counts))).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 3]);

  expect(cellsOf(await lines.allInnerTexts())).toEqual(
    expected.map(({ name, counts }) => [name, String(sumOf(counts))]),
  );
  const names = await lines.getByRole("img").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  expect(names).toEqual(
    expected.map(({ counts }) => dates.map((date, day) => `${shown(date)}: ${counts[day]}`).join(", ")),
  );
  // The charts of all users have one scale, which ends at 2 status changes a day, so the height of a bar is its count divided by 2.
  const heights = await lines
    .first()
    .locator("rect")
    .evaluateAll((all) => all.map((one) => Number(one.getAttribute("height"))));
  expect(heights).toEqual(countsOf("User12 Rep").map((count) => count / 2));
  const axes = await panel("Status changes by day").locator("figure span").allInnerTexts();
  expect(axes).toEqual(["20", "10", "0", shown(present(dates[0])), shown(present(dates.at(-1)))]);
  const texts = await panel("Status changes by day")
    .locator("title")
    .evaluateAll((titles) => titles.map(({ textContent }) => textContent));
  expect(texts).toEqual(
    dates.map((date, day) => `${shown(date)}: ${sumOf([...present(days[day]).values()])} status changes`),
  );
  expect(await violationsOf(page)).toEqual([]);
});

test("has tables of everything that users did, by user and by territory", async () => {
  const { page } = admin;
  const dates = datesOf(7);
  const report = async (groupBy: "day" | "user") => {
    const query = { from: present(dates[0]), to: present(dates.at(-1)), groupBy, timezone };
    return dataOf(await team.owner.GET("/api/reports/activity", { params: { query } }));
  };
  type Counts = Record<"statusChanges" | "notes" | "appointments" | "creations", number>;
  const cells = ({ statusChanges, notes, appointments, creations }: Counts): string[] =>
    [statusChanges, notes, appointments, creations].map(String);
  const totals = cells((await report("day")).totals);
  expect(await page.locator("dl").locator("dd").allInnerTexts()).toEqual(totals);
  const users = (await report("user")).items.map(({ user, ...counts }) => [
    `${user?.firstName} ${user?.lastName}`,
    ...cells(counts),
  ]);
  expect(cellsOf(await table("Activity by user").allInnerTexts()).sort()).toEqual(users.sort());
  expect(cellsOf([await table("Activity by territory").first().innerText()])).toEqual([
    ["Outside all territories", ...totals],
  ]);
});

test("divides a long time span into at most 13 periods, which contain all of its days", async () => {
  const { page } = admin;
  const label = "Status changes of each user";
  for (const [days, periods, note] of [
    [30, 10, "Each column is 3 days."],
    [365, 13, "Each column is 29 days."],
  ] as const) {
    const ranges: string[] = [];
    const record = (request: Request): void => {
      const { pathname, searchParams: range } = new URL(request.url());
      if (pathname !== "/api/reports/activity" || range.get("groupBy") !== "user") return;
      ranges.push(`${range.get("from")} ${range.get("to")}`);
    };
    page.on("request", record);
    await page.goto(`/activity?days=${days}`);
    await page.getByText(note).waitFor();
    page.off("request", record);
    const dates = datesOf(days);
    const whole = `${dates[0]} ${dates.at(-1)}`;
    const parts = [...new Set(ranges)].filter((range) => range !== whole).sort();
    expect(parts).toHaveLength(periods);
    const covered = parts.flatMap((range) => {
      const [from = "", to = ""] = range.split(" ");
      return dates.filter((date) => date >= from && date <= to);
    });
    expect(covered).toEqual(dates);
    const lines = page.getByRole("list", { name: label }).getByRole("listitem");
    expect(await lines.first().locator("rect").count()).toBe(periods);
    expect(cellsOf(await lines.allInnerTexts())[0]).toEqual(["User12 Rep", "12"]);
  }
});

test("shows the number of prospects with each status in the order of the statuses, and their share", async () => {
  const { page } = admin;
  const rows = page.getByRole("list", { name: "Prospects by status" }).getByRole("listitem");
  await rows.first().waitFor();
  const statuses = dataOf(await team.owner.GET("/api/statuses"));
  const { items, total } = dataOf(await team.owner.GET("/api/prospects", { params: { query: { pageSize: 500 } } }));
  const countOf = (id: number | null): number =>
    items.filter(({ currentStatus }) => (currentStatus?.id ?? null) === id).length;
  const percent = (count: number): string => `${Math.round((count / total) * 1_000) / 10}%`;
  const row = (name: string, count: number) => [name, String(count), percent(count)];
  expect(countOf(present(statuses[0]).id)).toBeGreaterThan(countOf(present(statuses[2]).id));
  expect(cellsOf(await rows.allInnerTexts())).toEqual([
    ...statuses.map(({ id, value }) => row(value, countOf(id))),
    row("No status, or another", countOf(null)),
  ]);
  expect(await violationsOf(page)).toEqual([]);
});

test("shows a rep only the numbers of this rep", async () => {
  const email = team.owner.email.replace(/^owner@/, "user5@");
  const { page, context, faults } = await visit(browser(), email, "/activity?days=7");
  const lines = page.getByRole("list", { name: "Status changes of each user" }).getByRole("listitem");
  await lines.first().waitFor();
  expect(cellsOf(await lines.allInnerTexts())).toEqual([["User5 Rep", "5"]]);
  const rows = page.getByRole("list", { name: "Prospects by status" }).getByRole("listitem");
  await rows.first().waitFor();
  expect(faults).toEqual([]);
  await context.close();
});
