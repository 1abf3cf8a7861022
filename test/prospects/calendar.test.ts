/** Tests that the calendar has exactly the appointments that a user sees, and that a rep pays no read units for those of others. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { metered } from "#shared/db/meter.ts";
import { CalendarQuery, listAppointments } from "#shared/prospects/calendar.ts";
import type { Appointment } from "#shared/prospects/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { addRep, type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const START = Date.parse("2030-01-30T00:00:00.000Z");
const newFunction = (): ApiContext => warmFunction(db, { now: () => START });
/**
 * Returns the time `n` hours after START. START is two days before the end of a month, so that `range` covers two months: the calendar has
 * a separate partition for each month.
 */
const hour = (n: number): string => new Date(START + n * 3_600_000).toISOString();
const range = CalendarQuery.parse({ from: hour(0), to: hour(240) });

const calendar = async (context: ApiContext, caller: Caller): Promise<Appointment[]> =>
  Array.fromAsync(await listAppointments(context, caller, range));

async function withReps(context: ApiContext): Promise<{ company: Company; reps: [Caller, Caller] }> {
  const company = await newCompany(context);
  const { companyId } = company.caller;
  const id = await addRep(context, companyId, { email: `2-of-${companyId}@x.test`, firstName: "A", lastName: "B" });
  const rep = (userId: number): Caller => ({ companyId, userId, role: "sales", permissions: [] });
  return { company, reps: [rep(company.repId), rep(id)] };
}

test("neither other reps' appointments nor past ones cost a rep anything", async () => {
  const context = newFunction();
  const { company, reps } = await withReps(context);
  const { caller } = company;
  const [mine, theirs] = reps;
  const add = async (assignee: Caller, n: number): Promise<void> => {
    const { id } = await verbs.createProspect(context, caller, { assignedToUserId: assignee.userId });
    await verbs.createAppointment(context, caller, id, { title: "t", startAt: hour(n), notes: "x".repeat(2_000) });
  };
  for (let n = 0; n < 4; n++) await add(mine, n);
  const read = async () => (await metered(() => calendar(context, mine))).usage.readUnits;
  const before = await read();
  for (let n = 0; n < 20; n++) await add(theirs, n);
  // The calendar of `mine` must read neither these past appointments nor those of the other rep. DynamoDB rounds the cost of a read up to
  // whole units, so a few appointments could be read without a visible cost. These 59 would cost several units.
  for (let n = 1; n < 60; n++) await add(mine, -n);
  expect(await read()).toBe(before);
  expect(await calendar(context, mine)).toHaveLength(4);
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
  const context = newFunction();
  const { company, reps } = await withReps(context);
  const { caller } = company;
  const owners = [reps[0].userId, reps[1].userId, null];
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
  const context = newFunction();
  const { company, reps } = await withReps(context);
  const { id } = await verbs.createProspect(context, company.caller, { assignedToUserId: reps[0].userId });
  await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      const own = newFunction();
      await verbs.createAppointment(own, company.caller, id, { title: "t", startAt: hour(i % 2 === 0 ? i : 100 - i) });
      await verbs.updateProspect(own, company.caller, id, { assignedToUserId: reps[i % 2]?.userId ?? null });
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
  const context = newFunction();
  const { company, reps } = await withReps(context);
  const [rep] = reps;
  const { id: prospectId } = await verbs.createProspect(context, company.caller, { assignedToUserId: rep.userId });
  const stays = await verbs.createAppointment(context, company.caller, prospectId, { title: "t", startAt: hour(2) });
  const moves = await verbs.createAppointment(context, company.caller, prospectId, { title: "t", startAt: hour(1) });
  const found = await listAppointments(context, rep, range);
  await verbs.updateAppointment(context, company.caller, moves.id, { startAt: hour(500) });
  expect((await Array.fromAsync(found)).map(({ id }) => id)).toEqual([stays.id]);
});

test("the time in an agenda's key never decreases, so a read in the order of the keys does not miss the agenda", async () => {
  const context = newFunction();
  const { company, reps } = await withReps(context);
  const [rep] = reps;
  const { id: prospectId } = await verbs.createProspect(context, company.caller, { assignedToUserId: rep.userId });
  const { id } = await verbs.createAppointment(context, company.caller, prospectId, { title: "t", startAt: hour(100) });
  const places = () =>
    Array.fromAsync(context.table.query(attachedKeys.agendas(rep.companyId, rep.userId, hour(0))), ({ sk }) => sk);
  const before = await places();
  expect(before).toHaveLength(1);
  await verbs.updateAppointment(context, company.caller, id, { startAt: hour(5) });
  expect(await places()).toEqual(before);
  expect(await calendar(context, rep)).toMatchObject([{ id, startAt: hour(5) }]);
});
