/** Tests that a calendar has exactly the appointments that its user sees, that it reads no others, and the next appointment in lists. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { CalendarQuery, listAppointments } from "#shared/prospects/calendar.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import type { Appointment } from "#shared/prospects/schema.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { addRep, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const START = Date.parse("2030-01-30T00:00:00.000Z");
const newFunction = (clock = { now: () => START }): ApiContext => warmFunction(db, clock);
/** Returns the time `n` hours after START. The times are in two months, because the calendar has a partition for each month. */
const hour = (n: number): string => new Date(START + n * 3_600_000).toISOString();
const range = CalendarQuery.parse({ from: hour(0), to: hour(240) });

const calendar = async (context: ApiContext, caller: Caller): Promise<Appointment[]> =>
  Array.fromAsync(await listAppointments(context, caller, range));

async function withReps() {
  const context = newFunction();
  const { caller, repId } = await newCompany(context);
  const { companyId } = caller;
  const id = await addRep(context, companyId, { email: `2-of-${companyId}@x.test`, firstName: "A", lastName: "B" });
  const asRep = (userId: number): Caller => ({ companyId, userId, role: "sales", permissions: [] });
  return { context, caller, rep: asRep(repId), otherRep: asRep(id) };
}

test("neither other reps' appointments nor past ones cost a rep anything", async () => {
  const { context, caller, rep, otherRep } = await withReps();
  const add = async (assignee: Caller, n: number): Promise<void> => {
    const { id } = await verbs.createProspect(context, caller, { assignedToUserId: assignee.userId });
    await verbs.createAppointment(context, caller, id, { title: "t", startAt: hour(n), notes: "x".repeat(2_000) });
  };
  for (let n = 0; n < 4; n++) await add(rep, n);
  const read = async () => (await metered(() => calendar(context, rep))).usage.readUnits;
  const before = await read();
  for (let n = 0; n < 20; n++) await add(otherRep, n);
  // The calendar of `rep` must read neither these past appointments nor those of the other rep. DynamoDB rounds the cost of a read up to
  // whole units, so a few appointments could be read without a visible cost. These 59 would cost several units.
  for (let n = 1; n < 60; n++) await add(rep, -n);
  expect(await read()).toBe(before);
  expect(await calendar(context, rep)).toHaveLength(4);
  expect(await calendar(context, caller)).toHaveLength(24);
});

const hours = fc.integer({ min: -5, max: 245 });
const which = fc.nat(5);
const step = fc.oneof(
  fc.record({ do: fc.constant("make" as const), which, hours }),
  fc.record({ do: fc.constant("move" as const), which, hours }),
  fc.record({ do: fc.constant("delete" as const), which }),
  fc.record({ do: fc.constant("assign" as const), which, to: fc.nat(2) }),
  fc.record({ do: fc.constant("hide" as const), which }),
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

interface Model {
  readonly prospects: Map<number, number | null>;
  readonly appointments: Map<number, { prospectId: number; startAt: string }>;
}

const nth = <T>(of: ReadonlyMap<number, T>, at: number): number => [...of.keys()][at % Math.max(1, of.size)] ?? 0;

const expected = ({ prospects, appointments }: Model, { role, userId }: Caller): number[] =>
  [...appointments]
    .filter(([, { prospectId }]) => prospects.has(prospectId))
    .filter(([, { prospectId }]) => role === "owner" || prospects.get(prospectId) === userId)
    .filter(([, { startAt }]) => startAt >= hour(0) && startAt <= hour(240))
    .sort(([a, one], [b, other]) => (one.startAt < other.startAt ? -1 : one.startAt > other.startAt ? 1 : a - b))
    .map(([id]) => id);

test("the calendar has exactly the appointments of the user's prospects after any writes", {
  tags: "sized",
}, async () => {
  const { context, caller, rep, otherRep } = await withReps();
  const reps = [rep, otherRep];
  const owners = [rep.userId, otherRep.userId, null];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
      const model: Model = { prospects: new Map(), appointments: new Map() };
      for (let i = 0; i < 3; i++) {
        const assignedToUserId = owners[i] ?? null;
        model.prospects.set((await verbs.createProspect(context, caller, { assignedToUserId })).id, assignedToUserId);
      }
      for (const todo of steps) await take(context, caller, model, todo, owners);
      for (const user of [caller, ...reps]) {
        const found = await calendar(context, user);
        const shown = found.filter(({ prospectId }) => model.prospects.has(prospectId)).map(({ id }) => id);
        expect(shown).toEqual(expected(model, user));
      }
      for (const id of model.prospects.keys()) await verbs.deleteProspect(context, caller, id);
      for (const user of [caller, ...reps]) expect(await calendar(context, user)).toEqual([]);
    }),
    { numRuns: sized({ short: 6, wide: 60 }) },
  );
});

async function take(
  context: ApiContext,
  caller: Caller,
  { prospects, appointments }: Model,
  todo: Step,
  owners: readonly (number | null)[],
): Promise<void> {
  const prospectId = nth(prospects, todo.which);
  const id = nth(appointments, todo.which);
  if (todo.do === "make" && prospects.size > 0) {
    const startAt = hour(todo.hours);
    const made = await verbs.createAppointment(context, caller, prospectId, { title: "t", startAt });
    appointments.set(made.id, { prospectId, startAt });
  } else if (todo.do === "assign" && prospects.size > 0) {
    const assignedToUserId = owners[todo.to] ?? null;
    await verbs.updateProspect(context, caller, prospectId, { assignedToUserId });
    prospects.set(prospectId, assignedToUserId);
  } else if (todo.do === "hide" && prospects.size > 1) {
    await verbs.deleteProspect(context, caller, prospectId);
    prospects.delete(prospectId);
    for (const [each, on] of appointments) if (on.prospectId === prospectId) appointments.delete(each);
  } else if (todo.do === "move" && appointments.size > 0) {
    await verbs.updateAppointment(context, caller, id, { startAt: hour(todo.hours) });
    appointments.set(id, { prospectId: appointments.get(id)?.prospectId ?? 0, startAt: hour(todo.hours) });
  } else if (todo.do === "delete" && appointments.size > 0) {
    await verbs.deleteAppointment(context, caller, id);
    appointments.delete(id);
  }
}

test("each appointment that is created during a reassignment is found by exactly one rep", async () => {
  const { context, caller, rep, otherRep } = await withReps();
  const reps = [rep, otherRep];
  const { id } = await verbs.createProspect(context, caller, { assignedToUserId: rep.userId });
  await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      const own = newFunction();
      await verbs.createAppointment(own, caller, id, { title: "t", startAt: hour(i % 2 === 0 ? i : 100 - i) });
      await verbs.updateProspect(own, caller, id, { assignedToUserId: reps[i % 2]?.userId ?? null });
    }),
  );
  const found = await Promise.all(reps.map((rep) => calendar(newFunction(), rep)));
  expect(found.map(({ length }) => length).toSorted()).toEqual([0, 8]);
  const agendas = reps.map(({ companyId, userId }) =>
    Array.fromAsync(context.table.query(attachedKeys.agendas(companyId, userId, hour(-9)))),
  );
  expect((await Promise.all(agendas)).flat()).toHaveLength(1);
});

test("an appointment that is moved out of the range after the calendar found it, but before its row is read, is omitted", async () => {
  const { context, caller, rep } = await withReps();
  const { id: prospectId } = await verbs.createProspect(context, caller, { assignedToUserId: rep.userId });
  const stays = await verbs.createAppointment(context, caller, prospectId, { title: "t", startAt: hour(2) });
  const moves = await verbs.createAppointment(context, caller, prospectId, { title: "t", startAt: hour(1) });
  const found = await listAppointments(context, rep, range);
  await verbs.updateAppointment(context, caller, moves.id, { startAt: hour(500) });
  expect((await Array.fromAsync(found)).map(({ id }) => id)).toEqual([stays.id]);
});

test("the time in an agenda's key never decreases, so a read in the order of the keys does not miss the agenda", async () => {
  const { context, caller, rep } = await withReps();
  const { id: prospectId } = await verbs.createProspect(context, caller, { assignedToUserId: rep.userId });
  const { id } = await verbs.createAppointment(context, caller, prospectId, { title: "t", startAt: hour(100) });
  const places = () =>
    Array.fromAsync(context.table.query(attachedKeys.agendas(rep.companyId, rep.userId, hour(0))), ({ sk }) => sk);
  const before = await places();
  expect(before).toHaveLength(1);
  await verbs.updateAppointment(context, caller, id, { startAt: hour(5) });
  expect(await places()).toEqual(before);
  expect(await calendar(context, rep)).toMatchObject([{ id, startAt: hour(5) }]);
});

/** The clock of the tests of lists, which advance it. The clock of the other tests stands still. */
const listClock = { ms: START, now: () => listClock.ms };
const inHours = (n: number): string => new Date(listClock.ms + n * 3_600_000).toISOString();

test("the next appointment is shown as time passes, even if the row has no copy of it", async () => {
  const company = await newCompany(newFunction(listClock));
  const context = newFunction(listClock);
  const { id } = await verbs.createProspect(context, company.caller, { name: "n" });
  const shown = async () =>
    (await listProspects(context, company.caller, ListQuery.parse({}))).items[0]?.appointments.map(
      ({ title }) => title,
    );
  const make = (title: string, n: number, notes = "") =>
    verbs.createAppointment(context, company.caller, id, { title, startAt: inHours(n), notes });
  /** Returns two numbers: the upcoming appointments that have a copy in the prospect's row, and those that have none. */
  const copied = async () => {
    const row = storedProspect(await context.table.get(keys.prospect(company.caller.companyId, id)));
    return [row.upcoming.length, row.later.length];
  };

  await make("five", 5);
  const two = await make("two", 2);
  await make("nine", 9);
  await make("seven", 7);
  expect(await shown()).toEqual(["two"]);
  expect(await copied()).toEqual([3, 1]);

  await verbs.deleteAppointment(context, company.caller, two.id);
  expect(await shown()).toEqual(["five"]);
  expect(await copied()).toEqual([2, 1]);

  const long = await make("long", 1, "é".repeat(1_500));
  expect(await copied()).toEqual([0, 4]);
  expect(await shown()).toEqual(["long"]);
  await verbs.updateAppointment(context, company.caller, long.id, { status: "completed" });
  expect(await copied()).toEqual([3, 0]);

  await make("four", 4);
  listClock.ms += 8 * 3_600_000;
  // The three appointments that are copied in the row are in the past now, so the service must find the fourth one elsewhere.
  expect(await shown()).toEqual(["nine"]);
  listClock.ms += 2 * 3_600_000;
  expect(await shown()).toEqual([]);
});

test("a new appointment is not shown as the next one if an earlier one exists of which the prospect's row has no copy", async () => {
  const company = await newCompany(newFunction(listClock));
  const context = newFunction(listClock);
  const { id } = await verbs.createProspect(context, company.caller, {});
  const made = [];
  for (const n of [1, 2, 3, 4]) {
    made.push(await verbs.createAppointment(context, company.caller, id, { title: `${n}`, startAt: inHours(n) }));
  }
  await verbs.deleteAppointment(context, company.caller, made[0]?.id ?? 0);
  await verbs.createAppointment(context, company.caller, id, { title: "9", startAt: inHours(9) });
  listClock.ms += 3.5 * 3_600_000;
  const { items } = await listProspects(context, company.caller, ListQuery.parse({}));
  expect(items[0]?.appointments.map(({ title }) => title)).toEqual(["4"]);
});

const appointmentSteps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("make" as const), inHours: fc.integer({ min: -2, max: 12 }), isLong: fc.boolean() }),
    fc.record({ do: fc.constant("move" as const), which: fc.nat(5), inHours: fc.integer({ min: -2, max: 12 }) }),
    fc.record({ do: fc.constant("complete" as const), which: fc.nat(5) }),
    fc.record({ do: fc.constant("delete" as const), which: fc.nat(5) }),
    fc.record({ do: fc.constant("wait" as const), hours: fc.integer({ min: 1, max: 4 }) }),
  ),
  { minLength: 3, maxLength: 14 },
);

test("a list shows the next appointment after any writes of appointments", { tags: "sized" }, async () => {
  const company = await newCompany(newFunction(listClock));
  const context = newFunction(listClock);
  await fc.assert(
    fc.asyncProperty(appointmentSteps, async (todo) => {
      const { id, name } = await verbs.createProspect(context, company.caller, { name: `n${Math.random()}` });
      const known = new Map<number, { startAt: number; isScheduled: boolean }>();
      const at = (hours: number): number => listClock.ms + hours * 3_600_000;
      const nth = (which: number): number | undefined => [...known.keys()][which % Math.max(1, known.size)];
      for (const step of todo) {
        const which = "which" in step ? nth(step.which) : undefined;
        const standing = which === undefined ? undefined : known.get(which);
        if (step.do === "wait") listClock.ms += step.hours * 3_600_000;
        else if (step.do === "make") {
          const notes = step.isLong ? "x".repeat(1_900) : null;
          const input = { title: "t", startAt: new Date(at(step.inHours)).toISOString(), notes };
          const made = await verbs.createAppointment(context, company.caller, id, input);
          known.set(made.id, { startAt: at(step.inHours), isScheduled: true });
        } else if (which === undefined || standing === undefined) continue;
        else if (step.do === "move") {
          standing.startAt = at(step.inHours);
          const startAt = new Date(standing.startAt).toISOString();
          await verbs.updateAppointment(context, company.caller, which, { startAt });
        } else if (step.do === "complete") {
          standing.isScheduled = false;
          await verbs.updateAppointment(context, company.caller, which, { status: "completed" });
        } else {
          known.delete(which);
          await verbs.deleteAppointment(context, company.caller, which);
        }
        const coming = [...known].filter(([, { startAt, isScheduled }]) => isScheduled && startAt >= listClock.ms);
        const [soonest] = coming.sort(([a, one], [b, other]) => one.startAt - other.startAt || a - b);
        const { items } = await listProspects(context, company.caller, ListQuery.parse({ search: name }));
        expect(items.map(({ appointments }) => appointments.map((entry) => entry.id))).toEqual([
          soonest === undefined ? [] : [soonest[0]],
        ]);
      }
    }),
    { numRuns: sized({ short: 8, wide: 40 }) },
  );
});
