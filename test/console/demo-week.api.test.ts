/** Tests that the demo company has a week of work, so that its pages are not empty at first look. */
import { expect, test } from "vitest";
import { clientOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";

const DAY_MS = 86_400_000;
const admin = clientOf("admin@acme.test");

async function reportBy(groupBy: "day" | "user") {
  // The service may have started, and created the week, before midnight. The report therefore begins seven days ago.
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const dateOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
  const query = { from: dateOf(today - 7 * DAY_MS), to: dateOf(today), groupBy };
  return dataOf(await admin.GET("/api/reports/activity", { params: { query } })).items;
}

test("the reps have set statuses on each of the last six days, and nothing lies in the future", async () => {
  const days = await reportBy("day");
  expect(days.filter(({ statusChanges }) => statusChanges > 0).length).toBeGreaterThanOrEqual(6);
  const users = (await reportBy("user")).filter(({ statusChanges }) => statusChanges > 10);
  expect(users.map(({ user }) => user?.firstName)).toEqual(expect.arrayContaining(["Rita", "Ravi"]));
  const { items } = dataOf(await admin.GET("/api/prospects", { params: { query: { pageSize: 500 } } }));
  const times = items.flatMap(({ createdAt, updatedAt }) => [createdAt, updatedAt]);
  expect(times.filter((time) => Date.parse(time) > Date.now())).toEqual([]);
});
