/** What hangs on a prospect: reads of prospects do not pay for it, it has limits, and what is deleted is not read again. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAppointment, deleteAppointment } from "#shared/appointments/appointments.ts";
import { besideKeys } from "#shared/db/beside-keys.ts";
import { keys } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { limits } from "#shared/limits.ts";
import { createNote, deleteNote, listNotes } from "#shared/notes/notes.ts";
import { agendaWrites } from "#shared/prospects/agenda.ts";
import { readProspect } from "#shared/prospects/detail.ts";
import { exportProspects } from "#shared/prospects/export.ts";
import { ListQuery, listProspects } from "#shared/prospects/list.ts";
import { prospectItem, StoredProspect } from "#shared/prospects/stored.ts";
import { createProspect, updateProspect } from "#shared/prospects/write.ts";
import { createStatus } from "#shared/statuses/statuses.ts";
import { type World, worldOn } from "#shared/world.ts";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb } from "./faulty-dynamodb.ts";
import { type Company, newCompany, warmFunction } from "./warm-function.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());
beforeEach(() => db.plan(() => pass));

const START = Date.parse("2030-01-01T00:00:00.000Z");
const now = { ms: START };
const newFunction = (): World => warmFunction(db, { now: () => now.ms });
const at = (n: number): string => new Date(START + n * 60_000).toISOString();

async function allOf<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}

async function withProspects(count: number): Promise<{ company: Company; world: World; ids: number[] }> {
  const world = newFunction();
  const company = await newCompany(world);
  const ids: number[] = [];
  for (let i = 0; i < count; i++) ids.push((await createProspect(world, company.caller, { name: `n${i}` })).id);
  return { company, world, ids };
}

/** As so many calls of `createNote` leave the table, but for the index. */
async function hangNotes(world: World, { caller }: Company, prospectId: number, count: number, body: string) {
  const { companyId } = caller;
  const dated = (i: number) => ({ createdAt: at(i), updatedAt: at(i), createdBy: null, version: 1 });
  const notes = Array.from({ length: count }, (_, i) => ({
    ...besideKeys.note(companyId, prospectId, at(i), 900_000 + i),
    ...{ type: "note", id: 900_000 + i, companyId, prospectId, body: `${i} ${body}`, ...dated(i) },
  }));
  const counted = { ...besideKeys.noteCount(companyId, prospectId), type: "noteCount", prospectId, notes: count };
  await world.table.batchPut([...notes, counted]);
}

const textOf = async (world: World, company: Company): Promise<string> =>
  (await allOf(await exportProspects(world, company.caller, {}))).join("");

test("one prospect with 300 notes of 10 KB costs lists nothing, and the export and its detail the newest ones", async () => {
  const { company, world, ids } = await withProspects(40);
  const units = async <T>(work: () => Promise<T>): Promise<number> => (await metered(work)).usage.readUnits;
  const list = () => listProspects(world, company.caller, ListQuery.parse({}));
  const detail = () => readProspect(world, company.caller, ids[7] ?? 0);
  const whole = () => textOf(world, company);
  await list();
  const before = [await units(list), await units(whole), await units(detail)];
  await hangNotes(world, company, ids[7] ?? 0, 300, "x".repeat(10_000));
  const [listed, exported, shown] = [await units(list), await units(whole), await units(detail)];
  expect(listed).toBe(before[0]);
  expect(exported - (before[1] ?? 0)).toBeLessThanOrEqual(4);
  // Five notes of 10 KB.
  expect(shown - (before[2] ?? 0)).toBeLessThanOrEqual(13);
  expect((await metered(detail)).usage.rounds).toBe(1);
  expect(await whole()).toContain("299 xxx");
  expect((await detail()).notes.map(({ body }) => body.slice(0, 3))).toEqual(["299", "298", "297", "296", "295"]);
});

test("notes are listed newest first, whatever their ids are and in whatever pages they come", async () => {
  const { company, world, ids } = await withProspects(2);
  const [id = 0, other = 0] = ids;
  // Each function has a block of ids of its own: a later note may have a lower one.
  const [first, second] = [newFunction(), newFunction()];
  await createNote(second, company.caller, other, { body: "on another" });
  const bodies: string[] = [];
  for (let i = 0; i < 7; i++) {
    now.ms += 1_000;
    await createNote(i % 2 === 0 ? first : second, company.caller, id, { body: `${i}` });
    bodies.unshift(`${i}`);
  }
  db.plan((operation) => (operation === "Query" ? { kind: "ask", change: (asked) => ({ ...asked, Limit: 1 }) } : pass));
  const paged = worldOn(db.table, { now: () => now.ms });
  expect((await allOf(listNotes(paged, company.caller, id))).map(({ body }) => body)).toEqual(bodies);
  expect((await readProspect(paged, company.caller, id)).notes.map(({ body }) => body)).toEqual(bodies.slice(0, 5));
  expect(await textOf(paged, company)).toContain(",6,");
  expect((await readProspect(world, company.caller, other)).notes).toHaveLength(1);
});

test("the export shows the newest note of each, however many notes each has", async () => {
  const { company, world, ids } = await withProspects(24);
  for (const [i, id] of ids.entries()) {
    if (i % 3 === 0) await hangNotes(world, company, id, [1, 4, 5, 40][i % 4] ?? 1, `of ${i}`);
  }
  const lines = (await textOf(world, company)).split("\r\n").slice(1, -1).toReversed();
  expect(lines.map((line) => line.split(",")[15])).toEqual(
    ids.map((_, i) => (i % 3 === 0 ? `${([1, 4, 5, 40][i % 4] ?? 1) - 1} of ${i}` : "")),
  );
});

const conflict = { code: "conflict" };

test("a prospect takes 5 000 notes, and one more where one is deleted", async () => {
  const { company, world, ids } = await withProspects(1);
  const [id = 0] = ids;
  const key = besideKeys.noteCount(company.caller.companyId, id);
  const first = await createNote(world, company.caller, id, { body: "first" });
  await world.table.write({ update: key, change: { set: { notes: limits.notesPerProspect - 2 } } });
  const made = await Promise.allSettled(
    Array.from({ length: 6 }, () => createNote(newFunction(), company.caller, id, { body: "new" })),
  );
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  for (const one of made) if (one.status === "rejected") expect(one.reason).toMatchObject(conflict);
  await deleteNote(world, company.caller, first.id);
  await createNote(world, company.caller, id, { body: "in its place" });
  await expect(createNote(world, company.caller, id, { body: "new" })).rejects.toMatchObject(conflict);
  expect(await allOf(listNotes(world, company.caller, id))).toHaveLength(3);
  await expect(createNote(world, company.caller, 2 ** 40, { body: "on nothing" })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a prospect takes 500 appointments, and one more where one is deleted; deleted ones are not read", async () => {
  const { company, world, ids } = await withProspects(1);
  const [id = 0] = ids;
  const { companyId } = company.caller;
  const make = () => createAppointment(world, company.caller, id, { title: "t", startAt: at(1) });
  const made = await make();
  const units = async () => (await metered(() => readProspect(world, company.caller, id))).usage.readUnits;
  const before = await units();
  const notes = "x".repeat(10_000);
  for (let i = 0; i < 5; i++) {
    const gone = await createAppointment(world, company.caller, id, { title: "t", startAt: at(i), notes });
    await deleteAppointment(world, company.caller, gone.id);
  }
  expect(await units()).toBe(before);
  const prospect = StoredProspect.parse(await world.table.get(keys.prospect(companyId, id)));
  const full = Array.from({ length: limits.appointmentsPerProspect }, (_, i) => ({
    id: i === 0 ? made.id : i,
    startMs: START,
    isScheduled: false,
  }));
  await world.table.transact(agendaWrites(prospect, prospect, full));
  await expect(make()).rejects.toMatchObject(conflict);
  await deleteAppointment(world, company.caller, made.id);
  await make();
  await expect(make()).rejects.toMatchObject(conflict);
});

test("the status of a prospect changes 5 000 times; each change is in its history, the newest first", async () => {
  const { company, world, ids } = await withProspects(1);
  const [id = 0] = ids;
  const { companyId } = company.caller;
  const statuses = [
    await createStatus(world, companyId, { value: "A" }),
    await createStatus(world, companyId, { value: "B" }),
  ];
  const change = (i: number) => updateProspect(world, company.caller, id, { currentStatusId: statuses[i % 2]?.id });
  for (let i = 0; i < 5; i++) await change(i);
  const { statusHistory } = await readProspect(world, company.caller, id);
  expect(statusHistory.map(({ status }) => status?.value)).toEqual(["A", "B", "A", "B", "A"]);
  const row = StoredProspect.parse(await world.table.get(keys.prospect(companyId, id)));
  expect(row.pastStatusChanges).toBe(4);
  const pastStatusChanges = limits.statusChangesPerProspect - 2;
  await world.table.write({ put: { ...keys.prospect(companyId, id), ...prospectItem({ ...row, pastStatusChanges }) } });
  await change(5);
  await expect(change(6)).rejects.toMatchObject(conflict);
  await updateProspect(world, company.caller, id, { name: "other fields change still" });
});
