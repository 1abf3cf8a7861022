/**
 * Tests prospects that become visible to a user, cease to be visible or are deleted. Tests the costs, and that the user's devices get or
 * remove the notes and appointments together with their prospects.
 */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { Table } from "#shared/db/table.ts";
import { changeByImport } from "#shared/prospects/write.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createAppointment, createNote, deleteNote, deleteProspect, updateProspect } from "../harness/verbs.ts";
import { newReadCompany } from "./stage.ts";

const db = faultyDynamoDb();
test.each([
  { isFlushed: false, rounds: 2 },
  { isFlushed: true, rounds: 3 },
])(
  "prospects that move to another rep or are deleted are read in $rounds rounds (flushed: $isFlushed)",
  async (given) => {
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
    for (const id of scattered) await updateProspect(context, owner, id, { assignedToUserId: other.userId });
    await settle();
    await expectSeen(rep, "hidden");
    await expectSeen(other, "upsert");
    await feed(owner).pull();
    for (const id of scattered) await deleteProspect(context, owner, id);
    await settle();
    await expectSeen(other, "deleted");
    await expectSeen(owner, "deleted");
  },
);

const ways = ["added", "added and deleted", "added by an import", "an appointment", "added during the move"] as const;

test.each(ways.flatMap((way) => [true, false].map((isFlushed) => ({ way, isFlushed }))))(
  "a note ($way) moves with its prospect (flushed: $isFlushed)",
  async ({ way, isFlushed }) => {
    const { context, owner, rep, other, scattered, flush, feed } = await newReadCompany(db, 1);
    const [id = expect.fail()] = scattered;
    const settle = async () => (isFlushed ? flush() : undefined);
    let racing = context;
    if (way === "added during the move") {
      let isFirst = true;
      // The note is added after the request has read the prospect's row, and before its transaction.
      const transact: Table["transact"] = async (writes) => {
        if (isFirst) await createNote(context, rep, id, { body: "Call again" });
        isFirst = false;
        await context.table.transact(writes);
      };
      const table = { ...context.table, transact };
      racing = { ...context, table };
    } else if (way === "an appointment") {
      await createAppointment(context, rep, id, { title: "Visit", startAt: "2030-01-01T00:00:00.000Z" });
    } else if (way === "added by an import") {
      const dictionary = await currentDictionary(context, owner.companyId);
      const change = { note: "Call", patch: { name: "Eve" } };
      await changeByImport(context, rep, id, { importId: "7", dictionary }, async () => change);
    } else {
      const note = await createNote(context, rep, id, { body: "Call again" });
      if (way === "added and deleted") await deleteNote(context, rep, note.id);
    }
    await settle();
    if (way !== "added during the move") for (const caller of [owner, rep]) await feed(caller).pull();
    await updateProspect(racing, owner, id, { assignedToUserId: other.userId });
    await settle();
    const of = async (caller: Caller) =>
      (await feed(caller).pull()).items.map(({ type, op }) => `${type} ${op}`).sort();
    const kinds = { "added and deleted": [], "an appointment": ["appointments"] }[String(way)] ?? ["notes"];
    const all = [...kinds, "prospects"];
    expect(await of(rep)).toEqual(all.map((type) => `${type} remove`));
    expect(await of(other)).toEqual(all.map((type) => `${type} upsert`));
    await feed(owner).pull();
    await deleteProspect(context, owner, id);
    await settle();
    expect(await of(owner)).toEqual(all.map((type) => `${type} remove`));
  },
);
