/** Tests `GET /api/reports/activity` over HTTP: the four groupings, what a representative gets, and invalid queries. */
import { expect, test } from "vitest";
import { at, type Client } from "../harness/client.ts";
import { rectangle } from "../harness/rings.ts";
import { dataOf, present, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const counts = (statusChanges: number, notes: number, appointments: number, creations: number) => ({
  statusChanges,
  notes,
  appointments,
  creations,
});

/** Returns the date `days` days from today. The reports of this test cover yesterday to tomorrow, so that the test may run at midnight. */
const near = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
type Grouping = "user" | "status" | "day" | "territory";
const report = async (
  client: Client,
  groupBy: Grouping,
  more: { timezone?: string; from?: string; to?: string } = {},
) => {
  const query = { from: near(-1), to: near(1), groupBy, ...more };
  return dataOf(await client.GET("/api/reports/activity", { params: { query } }));
};
const idOf = async (client: Client): Promise<number> => dataOf(await client.GET("/api/me")).user.id;

test("activity is counted by user, status, day and territory, at once and without staleness", async () => {
  const [ownerId, repId] = [await idOf(as.owner), await idOf(as.rep)];
  const statuses = dataOf(await as.owner.GET("/api/statuses"));
  const [first, second] = [present(statuses[0]), present(statuses[1])];
  const east = { name: "East", polygon: rectangle(10, 10, 12, 12) };
  const { id: territory } = dataOf(await as.owner.POST("/api/territories", { body: east }), 201);
  const inside = { lat: 11, lng: 11, currentStatusId: first.id };
  const own = at(dataOf(await as.rep.POST("/api/prospects", { body: inside }), 201).id);
  const other = at(dataOf(await as.owner.POST("/api/prospects", { body: { lat: 1, lng: 1 } }), 201).id);
  for (const currentStatusId of [second.id, null])
    dataOf(await as.rep.PATCH("/api/prospects/{id}", { ...own, body: { currentStatusId } }));
  dataOf(await as.rep.POST("/api/prospects/{id}/notes", { ...own, body: { body: "at home" } }), 201);
  const visit = { title: "Visit", startAt: "2030-01-01T10:00:00.000Z" };
  dataOf(await as.owner.POST("/api/prospects/{id}/appointments", { ...other, body: visit }), 201);

  const byUser = await report(as.owner, "user");
  expect(byUser).toMatchObject({ countedSince: null, timezone: "UTC", totals: counts(3, 1, 1, 2) });
  const rep = { user: { id: repId, lastName: "Rep" }, ...counts(3, 1, 0, 1) };
  const owner = { user: { id: ownerId }, ...counts(0, 0, 1, 1) };
  expect(byUser.items).toMatchObject([owner, rep].toSorted((a, b) => a.user.id - b.user.id));
  expect((await report(as.owner, "status")).items).toMatchObject([
    { status: { id: first.id, value: first.value }, ...counts(1, 0, 0, 1) },
    { status: { id: second.id }, ...counts(1, 0, 0, 0) },
    { status: null, ...counts(1, 1, 1, 1) },
  ]);
  expect((await report(as.owner, "territory")).items).toMatchObject([
    { territory: { id: territory, name: "East" }, ...counts(3, 1, 0, 1) },
    { territory: null, ...counts(0, 0, 1, 1) },
  ]);
  for (const timezone of ["UTC", "Pacific/Auckland"]) {
    const { items } = await report(as.owner, "day", { timezone });
    expect(items.every(({ day }) => /^\d{4}-\d\d-\d\d$/.test(String(day)))).toBe(true);
    expect(items.reduce((sum, item) => sum + item.statusChanges, 0)).toBe(3);
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
  for (const [from = "", to = ""] of [
    ["2026-01-02", "2026-01-01"],
    ["9999-12-31", "9999-12-31"],
    ["0001-01-01", "0001-01-01"],
  ]) {
    for (const timezone of ["UTC", "Pacific/Kiritimati"]) {
      const empty = { items: [], totals: counts(0, 0, 0, 0) };
      expect(await report(as.owner, "day", { from, to, timezone })).toMatchObject(empty);
    }
  }
});
