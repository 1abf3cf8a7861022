/**
 * Tests that a rep gets no prospect and no note after the prospect was assigned to another user, even if the function has an old row of the
 * prospect in memory, and the page ends before the end of the change log.
 */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import type { ChangeItem } from "#shared/sync/changes/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { createAppointment, createNote, createProspect, deleteProspect, updateProspect } from "../harness/verbs.ts";
import { Device } from "./device.ts";
import { newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();

test.each([
  { loss: "assigned to another rep", withNotes: true },
  { loss: "assigned to another rep", withNotes: false },
  { loss: "deleted", withNotes: true },
])("a prospect that was $loss is not shown any more (with notes: $withNotes)", async ({ loss, withNotes }) => {
  const { context, owner, reps, time } = await newTimedStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const settle = async () => {
    time.nowMs += 1_000;
    await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  };
  const pull = (caller: Caller, cursor: string | undefined, limit: number) =>
    readChanges(context, caller, { cursor, limit, types: undefined });
  let cursor: string | undefined;
  for (let hasMore = true; hasMore; ) ({ cursor, hasMore } = await pull(rep, cursor, 500));

  const { id } = await createProspect(context, owner, { name: "Maria" });
  if (withNotes) await createNote(context, owner, id, { body: "first" });
  await updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  for (let i = 0; i < 5; i++) await createProspect(context, owner, { assignedToUserId: rep.userId });
  await settle();
  // Another device of the rep reads the prospect. The function then has its row in memory.
  let second = cursor;
  for (let hasMore = true; hasMore; ) ({ cursor: second, hasMore } = await pull(rep, second, 1));
  if (loss === "deleted") await deleteProspect(context, owner, id);
  else await updateProspect(context, owner, id, { assignedToUserId: other.userId });
  // A device of the rep can have no copy of a note that was written so much later.
  time.nowMs += 120_000;
  if (loss !== "deleted") await createNote(context, other, id, { body: "secret" });
  await settle();

  const shown: ChangeItem[] = [];
  for (let hasMore = true; hasMore; ) {
    const page = await pull(rep, cursor, 1);
    ({ cursor, hasMore } = page);
    shown.push(...page.items.filter(({ op }) => op === "upsert"));
  }
  const ofProspect = shown.filter((item) => item.id === id || Object(item.data).prospectId === id);
  expect(ofProspect).toEqual([]);
});

test("if a prospect is deleted during a request, a device gets no two items with the same version of its appointment", async () => {
  const { context: direct, owner, time } = await newTimedStage(db);
  const context = { ...direct, table: db.table };
  for (let call = 1, isReached = true; isReached; call++) {
    const device = new Device(owner.userId, ["prospects", "appointments"], [500]);
    const pull = async (by: Pick<typeof direct, "table" | "clock" | "secrets">): Promise<void> => {
      const { cursor, limit, types } = device;
      device.apply(
        await readChanges(by, owner, { cursor, limit, types: cursor === undefined ? [...types] : undefined }),
      );
    };
    await pull(direct);
    time.nowMs += 1_000;
    const { id } = await createProspect(direct, owner, { name: "Maria" });
    await createAppointment(direct, owner, id, { title: "visit", startAt: "2030-01-01T10:00:00.000Z" });
    isReached = false;
    db.plan((_operation, number) => {
      if (number !== call) return pass;
      isReached = true;
      return { kind: "early", meanwhile: () => deleteProspect(direct, owner, id) };
    });
    await pull(context);
    db.plan(() => pass);
    // The law is in `Device.apply`.
    await pull(direct);
    if (isReached)
      expect([...device.copies((_, data) => data).values()].filter((one) => one.prospectId === id)).toEqual([]);
  }
});
