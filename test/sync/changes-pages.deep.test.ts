/**
 * Tests the pages of `GET /api/changes`: their read units, rounds and sizes, and an exact `total` of the snapshot during writes. A snapshot
 * must have each appointment once, and cost little more than a Query for the appointments.
 */
import { expect, test } from "vitest";
import { FLUSH_ENTRIES, flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import * as verbs from "../harness/verbs.ts";
import { addRep } from "../harness/warm-function.ts";
import type { Stage } from "./changes-law.ts";
import { feedOf } from "./feed.ts";
import { newStage, tickingClock } from "./stage.ts";

const db = faultyDynamoDb();
const all = { least: 1, settleMs: 0 };
const visit = { title: "Visit", startAt: "2030-01-01T09:00:00.000Z" };
const first = { types: undefined, cursor: undefined };

async function addTeam({ context, owner }: Stage, users: number, appointments: number): Promise<void> {
  const { companyId } = owner;
  for (let i = 0; i < users; i++) {
    const email = `member-${i}-of-${companyId}@x.test`;
    const assignedToUserId = await addRep(context, companyId, { email, firstName: "A", lastName: "B" });
    const prospect = await verbs.createProspect(context, owner, { name: "Ann", assignedToUserId });
    for (let n = 0; n < appointments; n++) await verbs.createAppointment(context, owner, prospect.id, visit);
  }
  await flush(context, companyId, all);
}

/** Reads all records of the company. Returns their number (`held`) and all totals that the pages state. */
async function snapshotOf({ context, owner }: Stage) {
  const pages = await feedOf(context, owner).pagesUntil(({ phase }) => phase === "changes");
  const held = new Set(pages.flatMap(({ items }) => items.flatMap(({ id, op }) => (op === "upsert" ? id : []))));
  return { held: held.size, totals: [...new Set(pages.slice(0, -1).map(({ total }) => total))] };
}

test("the first page of a small limit costs by the limit, and not by the users and appointments of the company", async () => {
  const costs: number[] = [];
  for (const [users, appointments] of [
    [2, 1],
    [20, 2],
  ] as const) {
    const stage = await newStage(db);
    await addTeam(stage, users, appointments);
    const page = () => readChanges(stage.context, stage.owner, { ...first, limit: 1 });
    await page();
    const { result, usage } = await metered(page);
    expect(result.total).toBe((await snapshotOf(stage)).held);
    costs.push(usage.readUnits);
  }
  const [small = 0, large] = costs;
  expect(large).toBe(small);
  expect(small).toBeLessThanOrEqual(3);
});

test("appointments of a deleted prospect do not count, although the prospect was reassigned before", async () => {
  const stage = await newStage(db);
  const { context, owner, reps } = stage;
  const kept = await verbs.createProspect(context, owner, { name: "Ann" });
  await verbs.createAppointment(context, owner, kept.id, visit);
  const { id } = await verbs.createProspect(context, owner, { name: "Bob" });
  await verbs.createAppointment(context, owner, id, visit);
  await verbs.updateProspect(context, owner, id, { assignedToUserId: reps[0]?.userId });
  await verbs.deleteProspect(context, owner, id);
  for (let i = 0; i < 2; i++) {
    const { held, totals } = await snapshotOf(stage);
    expect(totals).toEqual([held]);
  }
});

interface Pair {
  readonly add: () => Promise<{ readonly id: number }>;
  readonly remove?: (id: number) => Promise<unknown>;
}

/** Number of the statuses, tags and users that `pairsOf` has added. It is a part of their values, so that the values differ. */
let named = 0;

/** Returns for each type how another user adds and removes a record. The number of records of the other types does not change. */
function pairsOf({ context, owner, reps }: Stage, prospectId: number): Record<ChangeType, Pair> {
  const { companyId } = owner;
  const assignedToUserId = reps[0]?.userId;
  return {
    prospects: {
      add: () => verbs.createProspect(context, owner, { name: "Eve", assignedToUserId }),
      remove: (id) => verbs.deleteProspect(context, owner, id),
    },
    notes: {
      add: () => verbs.createNote(context, owner, prospectId, { body: "Call again" }),
      remove: (id) => verbs.deleteNote(context, owner, id),
    },
    appointments: {
      add: () => verbs.createAppointment(context, owner, prospectId, visit),
      remove: (id) => verbs.deleteAppointment(context, owner, id),
    },
    territories: {
      add: () => verbs.createTerritory(context, owner, { name: "North", totalProperties: 0, assignedToUserId: null }),
      remove: (id) => verbs.deleteTerritory(context, owner, id),
    },
    statuses: { add: () => verbs.createStatus(context, companyId, { value: `Later ${named++}` }) },
    tags: {
      add: () => verbs.createTag(context, companyId, { value: `Corner lot ${named++}` }),
      remove: (id) => verbs.deleteTag(context, companyId, id),
    },
    users: {
      add: () => {
        const email = `late-${named++}-of-${companyId}@x.test`;
        const rights = { role: "sales" as const, permissions: [] };
        const fields = { email, firstName: "A", lastName: "B", ...rights };
        return verbs.createUser(context, memoryIdentities(), owner, fields);
      },
    },
  };
}

test.each(ChangeType.options)(
  "while another user adds and removes records between any two reads, the total of %s was exact at one moment of the request",
  async (type) => {
    const stage = await newStage(db);
    const { context, owner, reps } = stage;
    const { id } = await verbs.createProspect(context, owner, { name: "Ann", assignedToUserId: reps[0]?.userId });
    const { add, remove } = pairsOf(stage, id)[type];
    const made = [(await add()).id, (await add()).id];
    await flush(context, owner.companyId, all);
    for (const caller of [owner, ...reps.slice(0, 1)]) {
      const seen = async () =>
        (await readChanges(context, caller, { limit: 500, types: [type], cursor: undefined })).items.length;
      for (const [turn, kind] of (["early", "late"] as const).entries()) {
        let count = await seen();
        const possible = new Set([count]);
        let left = turn;
        const meanwhile = async () => {
          const oldest = remove === undefined || left++ % 2 === 0 ? undefined : made.shift();
          if (oldest === undefined) made.push((await add()).id);
          else await remove?.(oldest);
          count += oldest === undefined ? 1 : -1;
          possible.add(count);
        };
        const busy = contextOn(db.table, tickingClock());
        db.plan(() => ({ kind, meanwhile }));
        const { total } = await readChanges(busy, caller, { limit: 1, types: [type], cursor: undefined });
        db.plan(() => pass);
        expect([...possible], kind).toContain(total);
      }
    }
  },
);

const MONTHS = 60;

/** Creates two appointments in every second month, and ten in the first month. Returns their ids in the order of their starts. */
async function withAppointments({ context, owner }: Stage): Promise<number[]> {
  const { id } = await verbs.createProspect(context, owner, { name: "Ann" });
  const made: { id: number; startAt: string }[] = [];
  for (let month = 0; month < MONTHS; month += 2) {
    for (let day = 1; day <= (month === 0 ? 10 : 2); day++) {
      const startAt = new Date(Date.UTC(2027, month, day, 9)).toISOString();
      made.push(await verbs.createAppointment(context, owner, id, { title: "Visit", startAt, endAt: startAt }));
    }
  }
  await flush(context, owner.companyId, all);
  return made.map((appointment) => appointment.id);
}

async function appointmentsOf({ context, owner }: Stage, limit: number) {
  const { pagesUntil } = feedOf(context, owner, { limit, types: ["appointments"] });
  const pages = await pagesUntil(({ phase }) => phase === "changes");
  return {
    ids: pages.flatMap(({ items }) => items.map(({ id }) => id)),
    pages: pages.filter(({ items }) => items.length > 0).length,
    units: pages.reduce((sum, page) => sum + page.units, 0),
  };
}

test("a prospect that gets another assignee while the agendas are read keeps its appointments in the snapshot", async () => {
  const stage = await newStage(db);
  const { context, owner, reps } = stage;
  const [from, to] = [reps[1]?.userId ?? 0, reps[0]?.userId ?? 0];
  const { id } = await verbs.createProspect(context, owner, { name: "Ann", assignedToUserId: from });
  const other = await verbs.createProspect(context, owner, { name: "Bob" });
  const made: number[] = [];
  for (const [prospect, startAt] of [
    [other.id, "2040-01-01T09:00:00.000Z"],
    [id, "2040-02-01T09:00:00.000Z"],
  ] as const) {
    made.push((await verbs.createAppointment(context, owner, prospect, { title: "Visit", startAt })).id);
  }
  await flush(context, owner.companyId, all);
  const isMoved = Promise.withResolvers<void>();
  const agendasOf = (userId: number): string => attachedKeys.agendas(owner.companyId, userId, "0").pk;
  const query: typeof context.table.query = async function* (wanted) {
    // An agenda is a row with the appointment times of one prospect. It is in the partition of the assignee. The prospect gets the assignee
    // `to` after the snapshot has read the partition of `to`, and before it reads that of `from`. The agenda is then in neither result.
    if (wanted.pk === agendasOf(from)) await isMoved.promise;
    yield* context.table.query(wanted);
    if (wanted.pk !== agendasOf(to)) return;
    await verbs.updateProspect(context, owner, id, { assignedToUserId: to });
    isMoved.resolve();
  };
  const { ids } = await appointmentsOf({ ...stage, context: { ...context, table: { ...context.table, query } } }, 500);
  expect([...new Set(ids)]).toEqual(made);
});

test("a snapshot with pages of any size has each appointment once, in order; with one page it reads the agendas once", async () => {
  const stage = await newStage(db);
  const expected = await withAppointments(stage);
  for (const limit of [1, 3, 7, 10, 11])
    expect((await appointmentsOf(stage, limit)).ids, `pages of ${limit}`).toEqual(expected);
  const { companyId } = stage.owner;
  const bare = await metered(async () => {
    for (let month = 0; month < MONTHS; month += 2) {
      const name = new Date(Date.UTC(2027, month)).toISOString().slice(0, 7);
      for await (const _ of stage.context.table.query(attachedKeys.calendar(companyId, name, name, `${name}~`)));
    }
  });
  const { ids, pages, units } = await appointmentsOf(stage, 500);
  expect(ids).toEqual(expected);
  expect(pages).toBe(1);
  // `bare` is the cost of reading all appointments. The snapshot has two requests, and both also read the head row of the search index. The
  // first request also reads the agendas with one Query for each user, and one for prospects without an assignee. It then reads the change
  // log again (1.5 units), to find agendas that have moved meanwhile.
  const users = 1 + stage.reps.length;
  expect(units).toBeLessThanOrEqual(bare.usage.readUnits + 3 + 1.5 * (users + 1) + 1.5);
});

const COUNT = 70;
/** Maximum number of unflushed entries. One more entry would start a flush. */
const MOST_UNFLUSHED = FLUSH_ENTRIES - 1;

test("the units of a snapshot, of a request that finds nothing, and of one that finds changes", async () => {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const ids: number[] = [];
  for (let i = 0; i < COUNT; i++)
    ids.push((await verbs.createProspect(context, owner, { name: `Maria Garcia ${i}` })).id);
  await flush(context, companyId, all);
  const newFeed = () => feedOf(context, owner, { types: ["prospects"], forgets: true });
  const feed = newFeed();
  const pull = async () => {
    const { items, units, rounds } = await feed.pull();
    return { items: items.length, units, rounds };
  };
  const blocks = [...new Set(ids.map(keys.blockOf))];
  const bare = await metered(async () => {
    for (const block of blocks)
      for await (const _ of context.table.query({ ...keys.prospectBlock(companyId, block), consistency: "eventual" }));
  });
  await newFeed().pull();
  const snapshot = await pull();
  const afterSnapshot = await pull();
  const idle = await pull();
  for (const id of ids.slice(0, MOST_UNFLUSHED)) await verbs.updateProspect(context, owner, id, { name: "Ann" });
  const unflushed = await pull();
  const idleAgain = await pull();
  await flush(context, companyId, all);
  for (const id of ids.slice(0, 60)) await verbs.updateProspect(context, owner, id, { name: "Eve" });
  const { usage } = await metered(() => flush(context, companyId, all));
  const flushed = await pull();
  // In addition to the rows of the prospects, a page of a snapshot reads the head row of the search index, which costs one unit.
  expect(snapshot).toEqual({ items: COUNT, units: bare.usage.readUnits + 1, rounds: 2 });
  // If nothing has changed, a request reads only the head row, which costs one unit.
  for (const { items, units, rounds } of [afterSnapshot, idle]) {
    expect([items, rounds]).toEqual([0, 1]);
    expect(units).toBeLessThanOrEqual(1);
  }
  expect([idleAgain.items, idleAgain.rounds]).toEqual([0, 1]);
  expect(idleAgain.units).toBeLessThanOrEqual(1 + MOST_UNFLUSHED / 8);
  expect([unflushed.items, flushed.items]).toEqual([MOST_UNFLUSHED, 60]);
  expect(unflushed.units).toBeLessThanOrEqual(MOST_UNFLUSHED + 3);
  expect(unflushed.rounds).toBeLessThanOrEqual(2);
  expect(flushed.units).toBeLessThanOrEqual(60 + 3);
  expect(flushed.rounds).toBeLessThanOrEqual(3);
  // The flush deletes 60 entries for one unit each. It also writes the chunk of the change log (two units) and the head row. The head row
  // costs two units instead of one, because a write in a transaction costs twice as much.
  expect(usage.writeUnits).toBeLessThanOrEqual(60 + 8 + 60 / 10);
});

test("of 70 prospects with notes that become visible, one page contains 64, and the next one the others", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  const ids: number[] = [];
  for (let i = 0; i < 70; i++) {
    const { id } = await verbs.createProspect(context, owner, { name: "Maria" });
    await verbs.createNote(context, owner, id, { body: "Call again" });
    ids.push(id);
  }
  const { pull, pagesUntil } = feedOf(context, rep, { forgets: true });
  for (let i = 0; i < 2; i++) await pull();
  for (const id of ids) await verbs.updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  await flush(context, owner.companyId, all);
  const pages = await pagesUntil(({ hasMore }) => !hasMore);
  expect(pages.map(({ items }) => items.length)).toEqual([2 * 64, 2 * 6]);
});

test("a prospect with 150 notes becomes visible with all of them", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  const { id } = await verbs.createProspect(context, owner, { name: "Maria Garcia" });
  for (let n = 0; n < 150; n++) await verbs.createNote(context, owner, id, { body: "Call again" });
  const { pull, rest } = feedOf(context, rep, { limit: 100 });
  for (let i = 0; i < 3; i++) await pull();
  await verbs.updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  const notes = (await rest()).filter(({ type }) => type === "notes");
  expect(new Set(notes.map((note) => note.id)).size).toBe(150);
});

test("notes of prospects that a rep may not see cost the rep's devices no reads", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const hidden = await verbs.createProspect(context, owner, { assignedToUserId: other.userId });
  const unassigned = await verbs.createProspect(context, owner, {});
  const own = await verbs.createProspect(context, owner, { assignedToUserId: rep.userId });
  const feed = feedOf(context, rep);
  const pull = async () => {
    const { items, units } = await feed.pull();
    return { items: items.length, units };
  };
  await flush(context, owner.companyId, all);
  for (let i = 0; i < 3; i++) await pull();
  const { id } = await verbs.createNote(context, owner, hidden.id, { body: "Call again" });
  for (let i = 0; i < 19; i++)
    await verbs.createNote(context, owner, i % 2 ? hidden.id : unassigned.id, { body: `${i}` });
  await verbs.updateNote(context, owner, id, { body: "Called" });
  const unflushed = await pull();
  await flush(context, owner.companyId, all);
  expect([unflushed, await pull()]).toEqual([
    { items: 0, units: 1 },
    { items: 0, units: 1.5 },
  ]);
  await verbs.createNote(context, owner, own.id, { body: "Yours" });
  expect((await pull()).items).toBe(1);
});
