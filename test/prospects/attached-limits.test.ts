/** Tests that a prospect has a limited number of notes, appointments and status changes, and that lists do not read them. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { agendaWrites } from "#shared/prospects/agenda.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { prospectItem, storedProspect } from "#shared/prospects/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { interrupted } from "../harness/killable.ts";
import * as verbs from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const START = Date.parse("2030-01-01T00:00:00.000Z");
const now = { ms: START };
const newFunction = (): ApiContext => warmFunction(db, { now: () => now.ms });
const at = (n: number): string => new Date(START + n * 60_000).toISOString();

/** Creates a company with prospects. `ids` are the ids of the prospects, and `id` is the first of them. */
async function withProspects(count = 1) {
  const context = newFunction();
  const { caller, repId } = await newCompany(context);
  const ids: number[] = [];
  for (let i = 0; i < count; i++) ids.push((await verbs.createProspect(context, caller, { name: `n${i}` })).id);
  return { context, caller, companyId: caller.companyId, repId, ids, id: ids[0] ?? 0 };
}

/** Writes many rows of notes with one batch. It writes no entries for the search index. Creating the notes one by one would take longer. */
async function hangNotes(context: ApiContext, { companyId }: Caller, prospectId: number, count: number, body: string) {
  const dated = (i: number) => ({ createdAt: at(i), updatedAt: at(i), createdBy: null, version: 1 });
  const notes = Array.from({ length: count }, (_, i) => ({
    ...attachedKeys.note(companyId, prospectId, at(i), 900_000 + i),
    ...{ type: "note", id: 900_000 + i, companyId, prospectId, body: `${i} ${body}`, ...dated(i) },
  }));
  const counted = { ...attachedKeys.noteCount(companyId, prospectId), type: "noteCount", prospectId, notes: count };
  await context.table.batchPut([...notes, counted]);
}

const textOf = async (context: ApiContext, caller: Caller): Promise<string> =>
  (await Array.fromAsync(await exportProspects(context, caller, {}))).join("");

test("300 notes of 10 KB cost a list nothing; an export and GET of one prospect read only the newest notes", async () => {
  const { context, caller, ids } = await withProspects(40);
  const units = async <T>(work: () => Promise<T>): Promise<number> => (await metered(work)).usage.readUnits;
  const list = () => listProspects(context, caller, ListQuery.parse({}));
  const detail = () => readProspect(context, caller, ids[7] ?? 0);
  const whole = () => textOf(context, caller);
  await list();
  const before = [await units(list), await units(whole), await units(detail)];
  await hangNotes(context, caller, ids[7] ?? 0, 300, "x".repeat(10_000));
  const [listed, exported, shown] = [await units(list), await units(whole), await units(detail)];
  expect(listed).toBe(before[0]);
  expect(exported - (before[1] ?? 0)).toBeLessThanOrEqual(4);
  // `readProspect` reads only the five newest of the 300 notes. Five notes of 10 KB cost 13 read units, so all 300 add no more than that.
  expect(shown - (before[2] ?? 0)).toBeLessThanOrEqual(13);
  expect((await metered(detail)).usage.rounds).toBe(1);
  expect(await whole()).toContain("299 xxx");
  expect((await detail()).notes.map(({ body }) => body.slice(0, 3))).toEqual(["299", "298", "297", "296", "295"]);
});

test("notes are listed newest first with any ids and any pages", async () => {
  const { context, caller, ids } = await withProspects(2);
  const [id = 0, other = 0] = ids;
  // Each function takes ids from its own block of 128 ids, so a later note can have a lower id. The list must not sort by ids.
  const [first, second] = [newFunction(), newFunction()];
  await verbs.createNote(second, caller, other, { body: "on another" });
  const bodies: string[] = [];
  for (let i = 0; i < 7; i++) {
    now.ms += 1_000;
    await verbs.createNote(i % 2 === 0 ? first : second, caller, id, { body: `${i}` });
    bodies.unshift(`${i}`);
  }
  db.plan((operation) => (operation === "Query" ? { kind: "ask", change: (asked) => ({ ...asked, Limit: 1 }) } : pass));
  const paged = contextOn(db.table, { now: () => now.ms });
  expect((await Array.fromAsync(listNotes(paged, caller, id))).map(({ body }) => body)).toEqual(bodies);
  expect((await readProspect(paged, caller, id)).notes.map(({ body }) => body)).toEqual(bodies.slice(0, 5));
  expect(await textOf(paged, caller)).toContain(",6,");
  expect((await readProspect(context, caller, other)).notes).toHaveLength(1);
});

const conflict = { code: "conflict" };

test("a prospect accepts 5 000 notes, and one more after a deletion", async () => {
  const { context, caller, companyId, id } = await withProspects();
  const key = attachedKeys.noteCount(companyId, id);
  const first = await verbs.createNote(context, caller, id, { body: "first" });
  await context.table.write({ update: key, change: { set: { notes: limits.notesPerProspect - 2 } } });
  const made = await Promise.allSettled(
    Array.from({ length: 6 }, () => verbs.createNote(newFunction(), caller, id, { body: "new" })),
  );
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  for (const one of made) if (one.status === "rejected") expect(one.reason).toMatchObject(conflict);
  await verbs.deleteNote(context, caller, first.id);
  await verbs.createNote(context, caller, id, { body: "in its place" });
  await expect(verbs.createNote(context, caller, id, { body: "new" })).rejects.toMatchObject(conflict);
  expect(await Array.fromAsync(listNotes(context, caller, id))).toHaveLength(3);
  await expect(verbs.createNote(context, caller, 2 ** 40, { body: "on nothing" })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a prospect accepts 500 appointments, and one more after a deletion; deleted appointments are not read", async () => {
  const { context, caller, companyId, id } = await withProspects();
  const make = () => verbs.createAppointment(context, caller, id, { title: "t", startAt: at(1) });
  const made = await make();
  const units = async () => (await metered(() => readProspect(context, caller, id))).usage.readUnits;
  const before = await units();
  const notes = "x".repeat(10_000);
  for (let i = 0; i < 5; i++) {
    const gone = await verbs.createAppointment(context, caller, id, { title: "t", startAt: at(i), notes });
    await verbs.deleteAppointment(context, caller, gone.id);
  }
  expect(await units()).toBe(before);
  const prospect = storedProspect(await context.table.get(keys.prospect(companyId, id)));
  const full = Array.from({ length: limits.appointmentsPerProspect }, (_, i) => ({
    id: i === 0 ? made.id : i,
    startMs: START,
    isScheduled: false,
  }));
  await context.table.transact(agendaWrites(prospect, prospect, full));
  await expect(make()).rejects.toMatchObject(conflict);
  await verbs.deleteAppointment(context, caller, made.id);
  await make();
  await expect(make()).rejects.toMatchObject(conflict);
});

test("the status of a prospect may change 5 000 times, and the history has every change, newest first", async () => {
  const { context, caller, companyId, id } = await withProspects();
  const statuses = await Array.fromAsync(["A", "B"], (value) => verbs.createStatus(context, companyId, { value }));
  const change = (i: number) => verbs.updateProspect(context, caller, id, { currentStatusId: statuses[i % 2]?.id });
  for (let i = 0; i < 5; i++) await change(i);
  const { statusHistory } = await readProspect(context, caller, id);
  expect(statusHistory.map(({ status }) => status?.value)).toEqual(["A", "B", "A", "B", "A"]);
  const row = storedProspect(await context.table.get(keys.prospect(companyId, id)));
  expect(row.pastStatusChanges).toBe(4);
  const pastStatusChanges = limits.statusChangesPerProspect - 2;
  await context.table.write({
    put: { ...keys.prospect(companyId, id), ...prospectItem({ ...row, pastStatusChanges }) },
  });
  await change(5);
  await expect(change(6)).rejects.toMatchObject(conflict);
  await verbs.updateProspect(context, caller, id, { name: "other fields change still" });
});

test("a note on a prospect whose import is not completed is refused", async () => {
  const { context, caller, companyId, id } = await withProspects();
  await context.table.batchPut([{ ...keys.import(companyId, 77), type: "import", state: "running" }]);
  await context.table.write({ update: keys.prospect(companyId, id), change: { set: { importId: "77" } } });
  await expect(verbs.createNote(context, caller, id, { body: "early" })).rejects.toMatchObject({ code: "not_found" });
});

test("a note on a prospect that is deleted meanwhile is refused", async () => {
  const { context, caller, id } = await withProspects();
  const table = interrupted(context.table, "transact", () => verbs.deleteProspect(context, caller, id));
  const refused = verbs.createNote(contextOn(table), caller, id, { body: "late" });
  await expect(refused).rejects.toMatchObject({ code: "not_found" });
});

test("the index entry of a note names the assignee whom the prospect has got meanwhile", async () => {
  const { context, caller, companyId, repId, id } = await withProspects();
  const reassign = () => verbs.updateProspect(context, caller, id, { assignedToUserId: repId });
  const table = interrupted(context.table, "transact", reassign);
  const { id: noteId } = await verbs.createNote(contextOn(table), caller, id, { body: "n" });
  const entry = await context.table.get(keys.noteDelta(companyId, id, noteId, 1));
  expect(entry).toMatchObject({ assignee: repId });
});
