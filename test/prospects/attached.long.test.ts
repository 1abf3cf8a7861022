/**
 * Tests writes of notes and appointments that are killed at any call to DynamoDB, or lose a reply. The record's row, its calendar entry, its
 * prospect and its locator must always agree. The client's retry must have the same result as a request without a fault.
 */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import * as appointments from "#shared/prospects/appointments.ts";
import { getAppointment } from "#shared/prospects/appointments.ts";
import { listAppointments } from "#shared/prospects/calendar.ts";
import * as notes from "#shared/prospects/notes.ts";
import { getNote, listNotes } from "#shared/prospects/notes.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { commanded } from "../harness/commanded.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type FaultPlan, pass } from "../harness/faulty-dynamodb.ts";
import { killedAt } from "../harness/kills.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import * as verbs from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

interface Scene {
  readonly caller: Caller;
  readonly prospectId: number;
  readonly noteId: number;
  readonly appointmentId: number;
  /** The partition keys of all written locators. A locator is a row that finds a note or an appointment by its id. */
  readonly places: Set<string>;
}

const JANUARY = "2030-01-15T10:00:00.000Z";
const JUNE = "2030-06-15T10:00:00.000Z";

async function scene(caller: Caller): Promise<Scene> {
  const context = contextOn(db.direct);
  const { id: prospectId } = await verbs.createProspect(context, caller, {});
  const [note, appointment] = await Promise.all([
    verbs.createNote(context, caller, prospectId, { body: "first" }),
    verbs.createAppointment(context, caller, prospectId, { title: "first", startAt: JANUARY }),
  ]);
  const { companyId } = caller;
  const places = [
    attachedKeys.noteLocator(companyId, note.id),
    attachedKeys.appointmentLocator(companyId, appointment.id),
  ];
  const partitions = new Set(places.map(({ pk }) => pk));
  return { caller, prospectId, noteId: note.id, appointmentId: appointment.id, places: partitions };
}

/** Returns the prospect's row with its notes, appointments, calendar entries and locators. */
async function rowsOf({ caller: { companyId }, prospectId, places }: Scene): Promise<Item[]> {
  const { pk, sk } = keys.prospect(companyId, prospectId);
  const months = [JANUARY, JUNE].map((startAt) => ({ pk: attachedKeys.calendarEntry(companyId, startAt, 1).pk }));
  const own = ["P", "N", "NC", "D", "X"].map((kind) => ({ pk, begins: sk.replace(/^P/, kind) }));
  const queries = [...own, ...months, ...[...places].map((place) => ({ pk: place }))];
  const rows = await Promise.all(queries.map((query) => Array.fromAsync(db.direct.query(query))));
  return rows.flat().filter((row) => row.type === "prospect" || row.prospectId === prospectId);
}

/** Wraps a fault plan, and adds the partition of each written locator to `places`. */
const watching =
  ({ places }: Scene, plan: FaultPlan): FaultPlan =>
  (operation, number, body) => {
    for (const [place] of JSON.stringify(body).matchAll(/C#\d+#I#\d+/g)) places.add(place);
    return plan(operation, number, body);
  };

/** Expects exactly one locator for each note and appointment, and a copy of each appointment in the calendar and in the prospect's row. */
async function expectWhole(at: Scene, place: string): Promise<void> {
  const rows = await rowsOf(at);
  const { companyId } = at.caller;
  const ofType = (type: string): Item[] => rows.filter((row) => row.type === type);
  const keyOf = ({ pk, sk }: Item): string => `${pk} ${sk}`;
  const notes = ofType("note");
  const appointments = ofType("appointment").filter(({ deletedAt }) => deletedAt === undefined);
  const places = [
    ...notes.map(({ id }) => attachedKeys.noteLocator(companyId, Number(id))),
    ...appointments.map(({ id }) => attachedKeys.appointmentLocator(companyId, Number(id))),
  ];
  expect(ofType("locator").map(keyOf).toSorted(), place).toEqual(places.map(({ pk, sk }) => `${pk} ${sk}`).toSorted());
  for (const { prospectId } of ofType("locator")) expect(prospectId).toBe(at.prospectId);
  const entries = appointments.map(({ pk: _, sk: __, ...row }) => ({
    ...row,
    ...attachedKeys.calendarEntry(companyId, String(row.startAt), Number(row.id)),
    type: "calendarEntry",
  }));
  const byKey = (a: Item, b: Item): number => (keyOf(a) < keyOf(b) ? -1 : 1);
  expect(ofType("calendarEntry").toSorted(byKey), place).toEqual(entries.toSorted(byKey));
  const upcoming = appointments
    .toSorted((a, b) => (String(a.startAt) < String(b.startAt) ? -1 : 1))
    .map(({ pk: _, sk: __, ...row }) => row);
  const prospects = ofType("prospect").map(storedProspect);
  expect(prospects, place).toMatchObject([{ id: at.prospectId, upcoming, later: [] }]);
}

interface Operation {
  readonly run: (context: ApiContext, at: Scene) => Promise<unknown>;
  /** Checks the rows when the write and its retries have ended. */
  readonly done: (context: ApiContext, at: Scene) => Promise<void>;
}

const whole = { from: Date.parse("2030-01-01"), to: Date.parse("2030-12-31") };
const calendarOf = async (context: ApiContext, at: Scene) =>
  (await Array.fromAsync(await listAppointments(context, at.caller, whole))).filter(
    ({ prospectId }) => prospectId === at.prospectId,
  );
const versionOf = async (at: Scene, type: string, id: number): Promise<unknown> =>
  (await rowsOf(at)).find((row) => row.type === type && row.id === id)?.version;
const notFound = { code: "not_found" };

const operations: Readonly<Record<string, Operation>> = {
  "a note is made under an idempotency key": {
    run: (context, at) =>
      commanded(context, at.caller, keyedPost(`${at.prospectId}`), (within) =>
        notes.createNote(within, at.caller, at.prospectId, { body: "new" }),
      ),
    done: async (context, at) =>
      expect(await Array.fromAsync(listNotes(context, at.caller, at.prospectId))).toHaveLength(2),
  },
  "a note is changed": {
    run: (context, at) => verbs.updateNote(context, at.caller, at.noteId, { body: "changed" }),
    done: async (context, at) => {
      expect(await getNote(context, at.caller, at.noteId)).toMatchObject({ body: "changed" });
      expect(await versionOf(at, "note", at.noteId)).toBe(2);
    },
  },
  "a note is deleted": {
    run: (context, at) => verbs.deleteNote(context, at.caller, at.noteId),
    done: (context, at) => expect(getNote(context, at.caller, at.noteId)).rejects.toMatchObject(notFound),
  },
  "an appointment is made under an idempotency key": {
    run: (context, at) =>
      commanded(context, at.caller, keyedPost(`${at.prospectId}`), (within) =>
        appointments.createAppointment(within, at.caller, at.prospectId, { title: "new", startAt: JUNE }),
      ),
    done: async (context, at) => expect(await calendarOf(context, at)).toHaveLength(2),
  },
  "an appointment moves to another month": {
    run: (context, at) => verbs.updateAppointment(context, at.caller, at.appointmentId, { startAt: JUNE }),
    done: async (context, at) => {
      const [entry, ...more] = await calendarOf(context, at);
      expect(more).toEqual([]);
      expect(entry).toMatchObject({ id: at.appointmentId, startAt: JUNE });
      expect(await versionOf(at, "appointment", at.appointmentId)).toBe(2);
    },
  },
  "an appointment is deleted": {
    run: (context, at) => verbs.deleteAppointment(context, at.caller, at.appointmentId),
    done: async (context, at) => {
      await expect(getAppointment(context, at.caller, at.appointmentId)).rejects.toMatchObject(notFound);
      expect(await calendarOf(context, at)).toEqual([]);
      expect(await versionOf(at, "appointment", at.appointmentId)).toBe(2);
    },
  },
};

/** The plans with a fault at call number `at`. After a kill, all later calls fail too. */
const faults: Readonly<Record<string, (at: number) => FaultPlan>> = {
  "killed before": (at) => killedAt(at),
  "killed after": (at) => killedAt(at, { kind: "lose reply" }),
  "a lost reply": (at) => (_, number) => (number === at ? { kind: "lose reply" } : pass),
};

const cases = Object.keys(operations).flatMap((name) => Object.keys(faults).map((fault) => [name, fault] as const));

test.each(cases)("%s, %s at each call", async (name, fault) => {
  const [operation, planAt] = [operations[name], faults[fault]];
  if (operation === undefined || planAt === undefined) throw new Error("no such case");
  const caller = await newOwner(contextOn(db.direct));
  db.plan(() => pass);
  await operation.run(contextOn(db.table), await scene(caller));
  const calls = [...db.calls];
  for (let number = 1; number <= calls.length; number++) {
    const place = `call ${number} of ${calls.join(", ")}`;
    const here = await scene(caller);
    db.plan(watching(here, planAt(number)));
    const [{ status }] = await Promise.allSettled([operation.run(contextOn(db.table), here)]);
    await expectWhole(here, place);
    // If only one reply is lost, the service itself repeats the call, so the write must succeed.
    if (fault === "a lost reply") expect(status, place).toBe("fulfilled");
    db.plan(watching(here, () => pass));
    if (status === "rejected") await retried(operation, here);
    await expectWhole(here, place);
    await operation.done(contextOn(db.direct), here);
  }
});

/** Repeats the operation after 31 seconds, when its idempotency key is free again. A repeated delete may get 404. */
async function retried({ run }: Operation, at: Scene): Promise<void> {
  const context = contextOn(db.table, { now: () => Date.now() + 31_000 });
  await run(context, at).catch((error: unknown) => expect(error).toMatchObject(notFound));
}
