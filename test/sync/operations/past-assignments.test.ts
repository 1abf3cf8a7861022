/**
 * Tests that the service accepts what a rep did while a prospect was assigned to this rep, even if it was reassigned many times since then.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { createProspect, updateProspect } from "../../harness/verbs.ts";
import { newTimedStage } from "../stage.ts";

const db = faultyDynamoDb();
const HOUR_MS = 3_600_000;
const DAYS = 59;
/** Number of days between two notes that the test sends. */
const STEP = 7;

test("a note of any day is accepted after the prospect had another assignee on each of 59 days", async () => {
  const { context, owner, reps, time } = await newTimedStage(db);
  const repAt = (day: number) => reps[day % reps.length] ?? expect.fail();
  const { id } = await createProspect(context, owner, { name: "Ann", assignedToUserId: repAt(0).userId });
  const days: { day: number; occurredAt: string }[] = [];
  for (let day = 0; day < DAYS; day++) {
    if (day % STEP === 0) days.push({ day, occurredAt: new Date(time.nowMs + 12 * HOUR_MS).toISOString() });
    time.nowMs += 24 * HOUR_MS;
    await updateProspect(context, owner, id, { assignedToUserId: repAt(day + 1).userId });
  }
  await updateProspect(context, owner, id, { assignedToUserId: null });
  const outcome = async (day: number, occurredAt: string): Promise<unknown> => {
    const operation = { opId: randomUUID(), type: "note.create", id, fields: { body: "late" }, occurredAt };
    const batch = { deviceId: "tablet", operations: [operation] };
    return (await applyBatch({ context, caller: repAt(day), requestId: "r" }, batch)).results[0]?.outcome;
  };
  for (const { day, occurredAt } of days) {
    expect(await outcome(day, occurredAt), `day ${day}`).toBe("applied");
    expect(await outcome(day + 1, occurredAt), `day ${day}, another rep`).toBe("rejected");
  }
});
