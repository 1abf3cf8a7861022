/**
 * Tests writes of notes and appointments while each of their calls to DynamoDB fails once. The record's row, its calendar entry, its
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
import { conflict, type FaultPlan, pass, throttle } from "../harness/faulty-dynamodb.ts";
import { killedAt } from "../harness/kills.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import {
  createAppointment,
  createNote,
  createProspect,
  deleteAppointment,
  deleteNote,
  updateAppointment,
  updateNote,
} from "../harness/verbs.ts";
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

const company = (): Promise<Caller> => newOwner(contextOn(db.direct));

async function scene(caller: Caller): Promise<Scene> {
  const context = contextOn(db.direct);
  const { id: prospectId } = await createProspect(context, caller, {});
  const [note, appointment] = await Promise.all([
    createNote(context, caller, prospectId, { body: "first" }),
    createAppointment(context, caller, prospectId, { title: "first", startAt: JANUARY }),
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
  const rows: Item[] = [];
  for (const query of queries) {
    for await (const row of db.direct.query(query)) {
      if (row.type === "prospect" || row.prospectId === prospectId) rows.push(row);
    }
  }
  return rows;
}

/**
 * Wraps a fault plan. It remembers the partition of every written locator, so that the test also finds a locator without its note or
 * appointment.
 */
const watching =
  ({ places }: Scene, plan: FaultPlan): FaultPlan =>
  (operation, number, body) => {
    for (const [place] of JSON.stringify(body).matchAll(/C#\d+#I#\d+/g)) places.add(place);
    return plan(operation, number, body);
  };

/**
 * Expects that every note and appointment has a locator. Also expects that the calendar and the prospect's row have equal copies of every
 * appointment. There must be no other locators and no other calendar entries.
 */
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
  /**
   * Checks the rows after the write and its retries. `runs` says how many of the requests have taken effect: at least `least` and at most
   * `most`.
   */
  readonly done: (context: ApiContext, at: Scene, runs: { least: number; most: number }) => Promise<void>;
}

const whole = { from: Date.parse("2030-01-01"), to: Date.parse("2030-12-31") };
const made = { title: "new", startAt: JUNE };
const calendarOf = async (context: ApiContext, at: Scene) =>
  (await Array.fromAsync(await listAppointments(context, at.caller, whole))).filter(
    ({ prospectId }) => prospectId === at.prospectId,
  );
const countOf = {
  notes: async (context: ApiContext, at: Scene) =>
    (await Array.fromAsync(listNotes(context, at.caller, at.prospectId))).length,
  appointments: async (context: ApiContext, at: Scene) => (await calendarOf(context, at)).length,
};

/**
 * Expects at least `least` new records. With an idempotency key, expects at most one. Without a key, expects at most `most`, because each
 * request that has taken effect may have created another record.
 */
const counted =
  (count: (context: ApiContext, at: Scene) => Promise<number>, isKeyed: boolean): Operation["done"] =>
  async (context, at, { least, most }) => {
    const added = (await count(context, at)) - 1;
    expect(added).toBeGreaterThanOrEqual(least);
    expect(added).toBeLessThanOrEqual(isKeyed ? 1 : most);
  };

const versionOf = async (at: Scene, type: string, id: number): Promise<unknown> =>
  (await rowsOf(at)).find((row) => row.type === type && row.id === id)?.version;
const notFound = { code: "not_found" };

const operations: Readonly<Record<string, Operation>> = {
  "a note is made": {
    run: (context, at) => createNote(context, at.caller, at.prospectId, { body: "new" }),
    done: counted(countOf.notes, false),
  },
  "a note is made under an idempotency key": {
    run: (context, at) =>
      commanded(context, at.caller, keyedPost(`${at.prospectId}`), (within) =>
        notes.createNote(within, at.caller, at.prospectId, { body: "new" }),
      ),
    done: counted(countOf.notes, true),
  },
  "a note is changed": {
    run: (context, at) => updateNote(context, at.caller, at.noteId, { body: "changed" }),
    done: async (context, at) => {
      expect(await getNote(context, at.caller, at.noteId)).toMatchObject({ body: "changed" });
      expect(await versionOf(at, "note", at.noteId)).toBe(2);
    },
  },
  "a note is deleted": {
    run: (context, at) => deleteNote(context, at.caller, at.noteId),
    done: (context, at) => expect(getNote(context, at.caller, at.noteId)).rejects.toMatchObject(notFound),
  },
  "an appointment is made": {
    run: (context, at) => createAppointment(context, at.caller, at.prospectId, made),
    done: counted(countOf.appointments, false),
  },
  "an appointment is made under an idempotency key": {
    run: (context, at) =>
      commanded(context, at.caller, keyedPost(`${at.prospectId}`), (within) =>
        appointments.createAppointment(within, at.caller, at.prospectId, made),
      ),
    done: counted(countOf.appointments, true),
  },
  "an appointment moves to another month": {
    run: (context, at) => updateAppointment(context, at.caller, at.appointmentId, { startAt: JUNE }),
    done: async (context, at) => {
      const [entry, ...more] = await calendarOf(context, at);
      expect(more).toEqual([]);
      expect(entry).toMatchObject({ id: at.appointmentId, startAt: JUNE });
      expect(await versionOf(at, "appointment", at.appointmentId)).toBe(2);
    },
  },
  "an appointment is deleted": {
    run: (context, at) => deleteAppointment(context, at.caller, at.appointmentId),
    done: async (context, at) => {
      await expect(getAppointment(context, at.caller, at.appointmentId)).rejects.toMatchObject(notFound);
      expect(await calendarOf(context, at)).toEqual([]);
      expect(await versionOf(at, "appointment", at.appointmentId)).toBe(2);
    },
  },
};

/** Makes the plan in which the call with number `at` fails or loses its reply. After a kill, all later calls fail too. */
const faults: Readonly<Record<string, (at: number) => FaultPlan>> = {
  "killed before": (at) => killedAt(at),
  "killed after": (at) => killedAt(at, { kind: "lose reply" }),
  throttled: (at) => (_, number) => (number === at ? throttle : pass),
  "a lost reply": (at) => (_, number) => (number === at ? { kind: "lose reply" } : pass),
  "a conflict": (at) => (operation, number) => (number === at && isTransaction(operation) ? conflict : pass),
};
/** Faults after which the service must repeat the call itself, so that the client does not notice them. */
const RIDDEN_OUT = ["throttled", "a lost reply", "a conflict"];
const isTransaction = (call: string): boolean => call.startsWith("Transact");

const cases = Object.keys(operations).flatMap((name) => Object.keys(faults).map((fault) => [name, fault] as const));

test.each(cases)("%s, %s at each call", async (name, fault) => {
  const [operation, planAt] = [operations[name], faults[fault]];
  if (operation === undefined || planAt === undefined) throw new Error("no such case");
  const caller = await company();
  db.plan(() => pass);
  await operation.run(contextOn(db.table), await scene(caller));
  const calls = [...db.calls];
  const possible = [...calls.entries()].filter(([, call]) => fault !== "a conflict" || isTransaction(call));
  for (const [index] of possible) {
    const place = `call ${index + 1} of ${calls.join(", ")}`;
    const here = await scene(caller);
    db.plan(watching(here, planAt(index + 1)));
    const [{ status }] = await Promise.allSettled([operation.run(contextOn(db.table), here)]);
    await expectWhole(here, place);
    if (RIDDEN_OUT.includes(fault)) expect(status, place).toBe("fulfilled");
    db.plan(watching(here, () => pass));
    if (status === "rejected") await retried(operation, here);
    await expectWhole(here, place);
    await operation.done(contextOn(db.direct), here, { least: 1, most: status === "fulfilled" ? 1 : 2 });
  }
});

/**
 * Repeats the request 31 seconds later, when its claim on the idempotency key has expired. A repeated delete may get 404, because the
 * record no longer exists.
 */
async function retried({ run }: Operation, at: Scene): Promise<void> {
  const context = contextOn(db.table, { now: () => Date.now() + 31_000 });
  await run(context, at).catch((error: unknown) => expect(error).toMatchObject(notFound));
}
