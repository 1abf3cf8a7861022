/** Tests how the snapshot of `GET /api/changes` reads appointments: each one exactly once, at nearly the cost of a plain Query. */
import { expect, test } from "vitest";
import { flush } from "#shared/company-index/write/flush.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { metered } from "#shared/db/meter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createAppointment, createProspect, updateProspect } from "../harness/verbs.ts";
import type { Stage } from "./changes-law.ts";
import { feedOf } from "./feed.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const MONTHS = 60;

/** Creates two appointments in every second month, and ten in the first month. Returns their ids in the order of their starts. */
async function withAppointments({ context, owner }: Stage): Promise<number[]> {
  const { id } = await createProspect(context, owner, { name: "Ann" });
  const made: { id: number; startAt: string }[] = [];
  for (let month = 0; month < MONTHS; month += 2) {
    for (let day = 1; day <= (month === 0 ? 10 : 2); day++) {
      const startAt = new Date(Date.UTC(2027, month, day, 9)).toISOString();
      made.push(await createAppointment(context, owner, id, { title: "Visit", startAt, endAt: startAt }));
    }
  }
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  return made.map((appointment) => appointment.id);
}

async function snapshotOf({ context, owner }: Stage, limit: number) {
  const { pagesUntil } = feedOf(context, owner, { limit, types: ["appointments"] });
  const pages = await pagesUntil(({ phase }) => phase === "changes");
  return {
    ids: pages.flatMap(({ items }) => items.map(({ id }) => id)),
    pages: pages.filter(({ items }) => items.length > 0).length,
    units: pages.reduce((sum, page) => sum + page.units, 0),
  };
}

test("a snapshot with pages of any size contains each appointment once, in order", async () => {
  const stage = await newStage(db);
  const expected = await withAppointments(stage);
  for (const limit of [1, 3, 7, 10, 11, 500])
    expect((await snapshotOf(stage, limit)).ids, `pages of ${limit}`).toEqual(expected);
});

test("a prospect that gets another assignee while the agendas are read keeps its appointments in the snapshot", async () => {
  const stage = await newStage(db);
  const { context, owner, reps } = stage;
  const [from, to] = [reps[1]?.userId ?? 0, reps[0]?.userId ?? 0];
  const { id } = await createProspect(context, owner, { name: "Ann", assignedToUserId: from });
  const other = await createProspect(context, owner, { name: "Bob" });
  const made: number[] = [];
  for (const [prospect, startAt] of [
    [other.id, "2040-01-01T09:00:00.000Z"],
    [id, "2040-02-01T09:00:00.000Z"],
  ] as const) {
    made.push((await createAppointment(context, owner, prospect, { title: "Visit", startAt })).id);
  }
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  const isMoved = Promise.withResolvers<void>();
  const agendasOf = (userId: number): string => attachedKeys.agendas(owner.companyId, userId, "0").pk;
  const query: typeof context.table.query = async function* (wanted) {
    // An agenda is a row with the appointment times of one prospect. It is in the partition of the assignee. The prospect gets the assignee
    // `to` after the snapshot has read the partition of `to`, and before it reads that of `from`. The agenda is then in neither result.
    if (wanted.pk === agendasOf(from)) await isMoved.promise;
    yield* context.table.query(wanted);
    if (wanted.pk !== agendasOf(to)) return;
    await updateProspect(context, owner, id, { assignedToUserId: to });
    isMoved.resolve();
  };
  const { ids } = await snapshotOf({ ...stage, context: { ...context, table: { ...context.table, query } } }, 500);
  expect([...new Set(ids)]).toEqual(made);
});

test("a snapshot of appointments in 30 months is one page, and reads the agendas once", async () => {
  const stage = await newStage(db);
  const expected = await withAppointments(stage);
  const { companyId } = stage.owner;
  const bare = await metered(async () => {
    for (let month = 0; month < MONTHS; month += 2) {
      const name = new Date(Date.UTC(2027, month)).toISOString().slice(0, 7);
      for await (const _ of stage.context.table.query(attachedKeys.calendar(companyId, name, name, `${name}~`)));
    }
  });
  const { ids, pages, units } = await snapshotOf(stage, 500);
  expect(ids).toEqual(expected);
  expect(pages).toBe(1);
  // `bare` is the cost of reading all appointments. The snapshot has two requests, and both also read the head row of the search index. The
  // first request also reads the agendas with one Query for each user, and one for prospects without an assignee. It then reads the change
  // log again (1.5 units), to find agendas that have moved meanwhile.
  const users = 1 + stage.reps.length;
  expect(units).toBeLessThanOrEqual(bare.usage.readUnits + 3 + 1.5 * (users + 1) + 1.5);
});
