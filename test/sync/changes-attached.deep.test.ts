/** Tests the notes and appointments in `GET /api/changes`: their cost, and that they become visible and hidden with their prospects. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { DELTA_TYPE } from "#shared/company-index/delta.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { getAppointment } from "#shared/prospects/appointments.ts";
import { writeByJob } from "#shared/prospects/bulk-write.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { getNote } from "#shared/prospects/notes.ts";
import { Note, Prospect } from "#shared/prospects/schema.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { changeByImport } from "#shared/prospects/write.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import type { ChangeItem, ChangeType } from "#shared/sync/changes/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { interrupted } from "../harness/killable.ts";
import * as verbs from "../harness/verbs.ts";
import { importProspects } from "./imported.ts";
import { newReadCompany } from "./stage.ts";

const db = faultyDynamoDb();
/** A text that is too long for an entry of the search index. */
const LONG = "Called. ".repeat(60);
const START = "2030-01-01T00:00:00.000Z";

const upserts = (items: readonly ChangeItem[], type: ChangeType): Map<number, unknown> =>
  new Map(items.flatMap((item) => (item.op === "upsert" && item.type === type ? [[item.id, item.data] as const] : [])));

/** Expects that the page costs at most one unit for each change and three more, and that it needs at most `rounds`. */
function expectWithin(page: { units: number; rounds: number }, changes: number, rounds: number): void {
  expect(page.units).toBeLessThanOrEqual(changes + 3);
  expect(page.rounds).toBeLessThanOrEqual(rounds);
}

test.each([
  { isFlushed: false, rounds: 2 },
  { isFlushed: true, rounds: 3 },
])("notes are read without the rows of their prospects (flushed: $isFlushed)", async ({ isFlushed, rounds }) => {
  const { context, owner, rep, scattered, flush, feed } = await newReadCompany(db, 12);
  const notes: number[] = [];
  for (const [i, id] of scattered.entries()) {
    const occurredAt = i % 2 === 0 ? undefined : "2026-06-01T08:00:00.000Z";
    notes.push(
      (await verbs.createNote(context, rep, id, { body: `Called Ünal ${i}.\nCall again` }, { occurredAt })).id,
    );
  }
  const check = async () => {
    if (isFlushed) await flush();
    for (const caller of [owner, rep]) {
      const page = await feed(caller).pull();
      const entries = notes.map(async (id) => [id, Note.parse(await getNote(context, caller, id))] as const);
      expect(upserts(page.items, "notes")).toEqual(new Map(await Promise.all(entries)));
      expectWithin(page, notes.length, rounds);
    }
  };
  await check();
  for (const id of notes) await verbs.updateNote(context, owner, id, { body: `Sold ${id}` });
  await check();
});

test.each([
  { isFlushed: false, rounds: 2 },
  { isFlushed: true, rounds: 3 },
])("appointments are read with their prospects (flushed: $isFlushed)", async ({ isFlushed, rounds }) => {
  const { context, owner, rep, scattered, flush, feed } = await newReadCompany(db, 12);
  const appointments: number[] = [];
  for (const id of scattered) {
    const fields = { title: "Roof inspection", startAt: START, endAt: "2030-01-01T01:00:00.000Z" };
    appointments.push((await verbs.createAppointment(context, rep, id, fields)).id);
  }
  const check = async () => {
    if (isFlushed) await flush();
    const entries = appointments.map(async (id) => [id, await getAppointment(context, owner, id)] as const);
    const expected = new Map(await Promise.all(entries));
    const { items } = await listProspects(context, owner, { page: 1, pageSize: 100 });
    const listed = new Map(items.map((item) => [item.id, Prospect.parse(item)]));
    for (const caller of [owner, rep]) {
      const page = await feed(caller).pull();
      expect(upserts(page.items, "appointments")).toEqual(expected);
      expect(upserts(page.items, "prospects")).toEqual(new Map(scattered.map((id) => [id, listed.get(id)])));
      expectWithin(page, 2 * appointments.length, rounds);
    }
  };
  await check();
  for (const [i, id] of appointments.entries()) {
    await verbs.updateAppointment(context, rep, id, i % 2 === 0 ? { status: "completed" } : { location: "12 Main St" });
  }
  await check();
});

test.each([true, false])("a rep gets no note of a prospect that the rep has lost (flushed: %s)", async (isFlushed) => {
  const { context, owner, rep, other, scattered, flush, feed } = await newReadCompany(db, 3);
  const [lost = expect.fail(), gone = expect.fail(), kept = expect.fail()] = scattered;
  for (const id of [lost, gone, kept]) {
    await verbs.createNote(context, rep, id, { body: "Call again" });
    await verbs.createAppointment(context, rep, id, { title: "Visit", startAt: START });
  }
  if (isFlushed) await flush();
  await verbs.updateProspect(context, owner, lost, { assignedToUserId: other.userId });
  await verbs.deleteProspect(context, owner, gone);
  if (isFlushed) await flush();
  const shown = async (caller: Caller) => {
    const { items } = await feed(caller).pull();
    const of = (type: ChangeType) => [...upserts(items, type).values()].map((data) => Object(data).prospectId);
    return [of("notes"), of("appointments")];
  };
  expect(await shown(rep)).toEqual([[kept], [kept]]);
  expect(await shown(other)).toEqual([[lost], [lost]]);
  const all = await shown(owner);
  expect(all.map((ids) => ids.toSorted((a, b) => a - b))).toEqual(Array(2).fill([lost, kept]));
});

test.each(["note", "prospect"])(
  "the entry of a %s that appears after a page has ended between the other changes of a chunk shows nothing",
  async (kind) => {
    const { context, owner, scattered, flush, feed } = await newReadCompany(db, 3);
    const [id = expect.fail(), ...others] = scattered;
    const { context: delayed, release } = delayedEntries(context);
    if (kind === "note") await verbs.createNote(delayed, owner, id, { body: "Call again" });
    if (kind === "prospect") await verbs.updateProspect(delayed, owner, id, { name: "Eve" });
    await verbs.deleteProspect(context, owner, id);
    for (const other of others) await verbs.updateProspect(context, owner, other, { name: "Ann" });
    await flush();
    const { items } = await feed(owner).pull({ limit: 1 });
    expect(items).toEqual([expect.objectContaining({ type: "prospects", id, op: "remove" })]);
    await release();
    const later = await feed(owner).rest();
    expect(later.filter((item) => item.op === "upsert" && !others.includes(item.id))).toEqual([]);
  },
);

test("the entry of a change that was made during the last request shows no deleted prospect", async () => {
  const { context, owner, scattered, flush, feed } = await newReadCompany(db, 3);
  const [id = expect.fail()] = scattered;
  let release = async (): Promise<void> => undefined;
  // The changes are made after the request has begun, and before it reads the change log.
  const meanwhile = async () => {
    const delayed = delayedEntries(context);
    await verbs.updateProspect(delayed.context, owner, id, { name: "Eve" });
    await verbs.deleteProspect(context, owner, id);
    ({ release } = delayed);
  };
  const reading = { ...context, table: interrupted(context.table, "query", meanwhile) };
  const page = await feed(owner).pull({ reading });
  expect(page.items).toContainEqual(expect.objectContaining({ type: "prospects", id, op: "remove" }));
  await flush();
  await release();
  expect((await feed(owner).pull()).items.filter(({ op }) => op === "upsert")).toEqual([]);
});

test.each([true, false])(
  "a deletion that is seen after the restore removes nothing (flushed: %s)",
  async (isFlushed) => {
    const { context, owner, scattered, flush, feed } = await newReadCompany(db, 3);
    const [id = expect.fail()] = scattered;
    const { context: delayed, release } = delayedEntries(context);
    await verbs.deleteProspect(delayed, owner, id);
    const dictionary = await currentDictionary(context, owner.companyId);
    const deleted = storedProspect(await context.table.get(keys.prospect(owner.companyId, id)));
    const job = { jobId: 1, events: "none" } as const;
    await writeByJob(context, owner, deleted, { after: { deletedAt: null }, job, dictionary });
    if (isFlushed) await flush();
    expect(upserts((await feed(owner).pull()).items, "prospects").has(id)).toBe(true);
    await release();
    if (isFlushed) await flush();
    expect((await feed(owner).pull()).items.filter(({ op }) => op === "remove")).toEqual([]);
  },
);

test("a rep's notes on imported prospects are read without the rows of the prospects, too", async () => {
  const { context, owner, rep, feed } = await newReadCompany(db, 3);
  const { prospects } = await importProspects(context, owner, Array<number>(20).fill(rep.userId));
  for (const caller of [owner, rep]) while ((await feed(caller).pull()).items.length > 0);
  const imported = prospects.filter((_, i) => i % 2 === 0);
  for (const { id } of imported) await verbs.createNote(context, rep, id, { body: "Call again" });
  for (const caller of [owner, rep]) {
    const page = await feed(caller).pull();
    expect(upserts(page.items, "notes").size).toBe(imported.length);
    expectWithin(page, imported.length, 2);
  }
});

/**
 * Returns a context whose transactions leave out index entries, as a reader may see them, and a function that writes these entries later.
 */
function delayedEntries(context: ApiContext): { context: ApiContext; release: () => Promise<void> } {
  const held: (Key & Item)[] = [];
  const isEntry = (write: Write): boolean => "put" in write && write.put.type === DELTA_TYPE;
  const transact = async (writes: readonly Write[]): Promise<void> => {
    for (const write of writes) if ("put" in write && isEntry(write)) held.push(write.put);
    await context.table.transact(writes.filter((write) => !isEntry(write)));
  };
  const table: Table = { ...context.table, transact };
  return { context: { ...context, table }, release: () => context.table.batchPut(held) };
}

test.each(["note", "changed note", "long note", "changed long note", "appointment", "prospect"])(
  "the entry of a %s that appears after the deletion of the prospect shows nothing",
  async (kind) => {
    const { context, owner, scattered, flush, feed } = await newReadCompany(db, 3);
    const [id = expect.fail()] = scattered;
    const earlier = await verbs.createNote(context, owner, id, { body: "Call" });
    await feed(owner).pull();
    const { context: delayed, release } = delayedEntries(context);
    if (kind === "note") await verbs.createNote(delayed, owner, id, { body: "Call again" });
    if (kind === "changed note") await verbs.updateNote(delayed, owner, earlier.id, { body: "Call again" });
    if (kind === "long note") await verbs.createNote(delayed, owner, id, { body: LONG });
    if (kind === "changed long note") await verbs.updateNote(delayed, owner, earlier.id, { body: LONG });
    if (kind === "appointment") await verbs.createAppointment(delayed, owner, id, { title: "Visit", startAt: START });
    if (kind === "prospect") await verbs.updateProspect(delayed, owner, id, { name: "Eve" });
    await verbs.deleteProspect(context, owner, id);
    const first = await feed(owner).pull();
    expect(first.items).toContainEqual(expect.objectContaining({ type: "prospects", id, op: "remove" }));
    await flush();
    await feed(owner).pull();
    await release();
    const { items } = await feed(owner).pull();
    expect(items.filter(({ op }) => op === "upsert")).toEqual([]);
  },
);

test.each([
  { isFlushed: false, rounds: 2 },
  { isFlushed: true, rounds: 3 },
])("prospects that move or are deleted are read in $rounds rounds (flushed: $isFlushed)", async (given) => {
  const { context, owner, rep, other, scattered, flush, feed } = await newReadCompany(db, 12);
  const settle = async () => (given.isFlushed ? flush() : undefined);
  // The row of each prospect costs half a unit. A Query for its notes and one for its appointments cost a unit each.
  const most = { units: 2.5 * scattered.length + 3, rounds: given.rounds };
  async function expectSeen(caller: Caller, op: string): Promise<void> {
    const { items, units, rounds } = await feed(caller).pull();
    const ops = new Set(items.map((item) => `${item.type} ${item.op === "remove" ? item.reason : item.op}`));
    expect([items.length, [...ops].join()]).toEqual([scattered.length, `prospects ${op}`]);
    expect(units).toBeLessThanOrEqual(most.units);
    expect(rounds).toBeLessThanOrEqual(most.rounds);
  }
  for (const id of scattered) await verbs.updateProspect(context, owner, id, { assignedToUserId: other.userId });
  await settle();
  await expectSeen(rep, "hidden");
  await expectSeen(other, "upsert");
  await feed(owner).pull();
  for (const id of scattered) await verbs.deleteProspect(context, owner, id);
  await settle();
  await expectSeen(other, "deleted");
  await expectSeen(owner, "deleted");
});

const ways = ["added", "added and deleted", "added by an import", "an appointment", "added during the move"] as const;

test.each(ways.flatMap((way) => [true, false].map((isFlushed) => ({ way, isFlushed }))))(
  "a note ($way) moves with its prospect (flushed: $isFlushed)",
  async ({ way, isFlushed }) => {
    const { context, owner, rep, other, scattered, flush, feed } = await newReadCompany(db, 1);
    const [id = expect.fail()] = scattered;
    const settle = async () => (isFlushed ? flush() : undefined);
    let racing = context;
    if (way === "added during the move") {
      // The note is added after the request has read the prospect's row, and before its transaction.
      const add = () => verbs.createNote(context, rep, id, { body: "Call again" });
      racing = { ...context, table: interrupted(context.table, "transact", add) };
    } else if (way === "an appointment") {
      await verbs.createAppointment(context, rep, id, { title: "Visit", startAt: "2030-01-01T00:00:00.000Z" });
    } else if (way === "added by an import") {
      const dictionary = await currentDictionary(context, owner.companyId);
      const change = { note: "Call", patch: { name: "Eve" } };
      await changeByImport(context, rep, id, { importId: "7", dictionary }, async () => change);
    } else {
      const note = await verbs.createNote(context, rep, id, { body: "Call again" });
      if (way === "added and deleted") await verbs.deleteNote(context, rep, note.id);
    }
    await settle();
    if (way !== "added during the move") for (const caller of [owner, rep]) await feed(caller).pull();
    await verbs.updateProspect(racing, owner, id, { assignedToUserId: other.userId });
    await settle();
    const of = async (caller: Caller) =>
      (await feed(caller).pull()).items.map(({ type, op }) => `${type} ${op}`).sort();
    const kinds = { "added and deleted": [], "an appointment": ["appointments"] }[String(way)] ?? ["notes"];
    const all = [...kinds, "prospects"];
    expect(await of(rep)).toEqual(all.map((type) => `${type} remove`));
    expect(await of(other)).toEqual(all.map((type) => `${type} upsert`));
    await feed(owner).pull();
    await verbs.deleteProspect(context, owner, id);
    await settle();
    expect(await of(owner)).toEqual(all.map((type) => `${type} remove`));
  },
);
