/** Tests `GET /api/reports/activity` over HTTP: the four groupings, what a representative gets, and invalid queries. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Client } from "../harness/client.ts";
import { rectangle } from "../harness/rings.ts";
import { bodyOf, Identified, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const Report = z.object({
  countedSince: z.nullable(z.string()),
  timezone: z.string(),
  totals: z.record(z.string(), z.int()),
  items: z.array(z.record(z.string(), z.unknown())),
});
const counts = (statusChanges: number, notes: number, appointments: number, creations: number) => ({
  statusChanges,
  notes,
  appointments,
  creations,
});

/** Returns the date `days` days from today. The reports of this test cover yesterday to tomorrow, so that the test may run at midnight. */
const near = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const range = `from=${near(-1)}&to=${near(1)}`;
const report = async (client: Client, groupBy: string, more = "") =>
  bodyOf(await client("GET", `/api/reports/activity?${range}&groupBy=${groupBy}${more}`), 200, Report);
const idOf = async (client: Client): Promise<number> =>
  bodyOf(await client("GET", "/api/me"), 200, z.object({ user: Identified })).user.id;

test("activity is counted by user, status, day and territory, at once and without staleness", async () => {
  const [ownerId, repId] = [await idOf(as.owner), await idOf(as.rep)];
  const Statuses = z.array(z.object({ id: z.number(), value: z.string() }));
  const statuses = bodyOf(await as.owner("GET", "/api/statuses"), 200, Statuses);
  const [first, second] = statuses;
  const polygon = rectangle(10, 10, 12, 12);
  const territory = bodyOf(await as.owner("POST", "/api/territories", { name: "East", polygon }), 201, Identified).id;
  const create = async (client: Client, body: object): Promise<number> =>
    bodyOf(await client("POST", "/api/prospects", body), 201, Identified).id;
  const inside = await create(as.rep, { lat: 11, lng: 11, currentStatusId: first?.id });
  const outside = await create(as.owner, { lat: 1, lng: 1 });
  bodyOf(await as.rep("PATCH", `/api/prospects/${inside}`, { currentStatusId: second?.id }), 200, Identified);
  bodyOf(await as.rep("PATCH", `/api/prospects/${inside}`, { currentStatusId: null }), 200, Identified);
  bodyOf(await as.rep("POST", `/api/prospects/${inside}/notes`, { body: "at home" }), 201, Identified);
  const visit = { title: "Visit", startAt: "2030-01-01T10:00:00.000Z" };
  bodyOf(await as.owner("POST", `/api/prospects/${outside}/appointments`, visit), 201, Identified);

  const byUser = await report(as.owner, "user");
  expect(byUser).toMatchObject({ countedSince: null, timezone: "UTC", totals: counts(3, 1, 1, 2) });
  const rep = { user: { id: repId, lastName: "Rep" }, ...counts(3, 1, 0, 1) };
  const owner = { user: { id: ownerId }, ...counts(0, 0, 1, 1) };
  expect(byUser.items).toMatchObject([owner, rep].toSorted((a, b) => a.user.id - b.user.id));
  expect((await report(as.owner, "status")).items).toMatchObject([
    { status: { id: first?.id, value: first?.value }, ...counts(1, 0, 0, 1) },
    { status: { id: second?.id }, ...counts(1, 0, 0, 0) },
    { status: null, ...counts(1, 1, 1, 1) },
  ]);
  expect((await report(as.owner, "territory")).items).toMatchObject([
    { territory: { id: territory, name: "East" }, ...counts(3, 1, 0, 1) },
    { territory: null, ...counts(0, 0, 1, 1) },
  ]);
  for (const timezone of ["UTC", "Pacific/Auckland"]) {
    const { items } = await report(as.owner, "day", `&timezone=${timezone}`);
    expect(items.every(({ day }) => /^\d{4}-\d\d-\d\d$/.test(String(day)))).toBe(true);
    expect(items.reduce((sum, item) => sum + Number(item.statusChanges), 0)).toBe(3);
  }
  // A representative gets only the representative's own activity. A user who may see all prospects gets the activity of all users.
  expect((await report(as.rep, "user")).items).toMatchObject([rep]);
  expect((await report(as.rep2, "user")).items).toEqual([]);
  expect((await report(as.viewer, "user")).totals).toEqual(byUser.totals);
  expect((await report(as.otherOwner, "user")).items).toEqual([]);
});

test.each([
  ["", "groupBy"],
  ["?from=2026-01-01&to=2026-01-02", "groupBy"],
  ["?from=2026-01-01&to=2026-01-02&groupBy=team", "groupBy"],
  ["?from=yesterday&to=2026-01-02&groupBy=day", "from"],
  ["?from=0000-01-01T00:00:00%2B14:00&to=0000-01-02&groupBy=day", "from"],
  ["?from=2026-01-01&to=2026-01-02&groupBy=day&timezone=Mars/Phobos", "timezone"],
  ["?from=2026-01-01&to=2026-01-02&groupBy=day&timezone=", "timezone"],
])("the query %s is refused, and the answer names %s", async (query, parameter) => {
  const answer = await as.owner("GET", `/api/reports/activity${query}`);
  expect(problemOf(answer, 400, "validation_failed").map((fault) => fault.parameter)).toContain(parameter);
});

test("a range that ends before it begins, and the last day of the calendar, give an empty report", async () => {
  for (const days of ["2026-01-02&to=2026-01-01", "9999-12-31&to=9999-12-31", "0001-01-01&to=0001-01-01"]) {
    for (const timezone of ["UTC", "Pacific/Kiritimati"]) {
      const answer = await as.owner("GET", `/api/reports/activity?from=${days}&groupBy=day&timezone=${timezone}`);
      expect(bodyOf(answer, 200, Report)).toMatchObject({ items: [], totals: counts(0, 0, 0, 0) });
    }
  }
});
