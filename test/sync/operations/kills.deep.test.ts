/**
 * Kills the function that applies a batch at each of its calls to the table, before or after the call has taken effect. In another test,
 * every fifth call fails. The device then sends the batch again. Each operation must have its effect exactly once.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { isTransient } from "#shared/errors.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import type { OperationBatch } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { pass } from "../../harness/faulty-dynamodb.ts";
import { calledBy, Killed } from "../../harness/killable.ts";
import { newOwner } from "../../harness/warm-function.ts";
import { oneInFive } from "../one-in-five.ts";

const db = faultyDynamoDb();

function batchOf(statusId: number): OperationBatch {
  const clientRecordId = randomUUID();
  const [title, startAt] = ["Inspection", "2040-01-01T10:00:00Z"];
  const operations = [
    { type: "prospect.create", fields: { name: "first", currentStatusId: statusId } },
    { type: "prospect.update", fields: { name: "second", currentStatusId: null } },
    { type: "note.create", fields: { body: "once" } },
    { type: "appointment.create", fields: { title, startAt } },
    { type: "prospect.tags", fields: { tagIds: [] } },
  ];
  return { deviceId: "tablet", operations: operations.map((one) => ({ opId: randomUUID(), clientRecordId, ...one })) };
}

/**
 * Returns a context that is killed at its call number `at` to the table. `takesEffect` says whether this call takes effect before the kill.
 * `calls` returns the number of calls so far.
 */
function killedAt(at: number, takesEffect: boolean): { context: ApiContext; calls: () => number } {
  let calls = 0;
  const table = calledBy(async (work) => {
    calls++;
    if (calls > at || (calls === at && !takesEffect)) throw new Killed();
    const result = await work();
    if (calls >= at) throw new Killed();
    return result;
  }, db.direct);
  return { context: contextOn(table), calls: () => calls };
}

async function pushAgain(caller: Caller, batch: OperationBatch): Promise<number> {
  const { results } = await applyBatch({ context: contextOn(db.direct), caller, requestId: "again" }, batch);
  for (const { outcome } of results) expect(["applied", "duplicate"]).toContain(outcome);
  return results[0]?.id ?? 0;
}

async function expectOnce(caller: Caller, id: number): Promise<void> {
  const context = contextOn(db.direct);
  const shown = await readProspect(context, caller, id);
  expect(shown).toMatchObject({ name: "second", currentStatus: null, appointments: [{ title: "Inspection" }] });
  expect([shown.statusHistory.length, shown.appointments.length]).toEqual([2, 1]);
  const bodies: string[] = [];
  for await (const { body } of listNotes(context, caller, id)) bodies.push(body);
  expect(bodies).toEqual(["once"]);
}

test.each([false, true])(
  "a batch that is killed at any call is applied once (after the call: %s)",
  async (takesEffect) => {
    const caller = await newOwner(contextOn(db.direct));
    const [statusId = 0] = (await loadDictionary(db.direct, caller.companyId)).statuses.keys();
    const whole = killedAt(Number.POSITIVE_INFINITY, takesEffect);
    await applyBatch({ context: whole.context, caller, requestId: "whole" }, batchOf(statusId));
    const prospects = new Set<number>();
    const points = Array.from({ length: whole.calls() }, (_, i) => i + 1);
    for (const at of points) {
      const batch = batchOf(statusId);
      await applyBatch({ context: killedAt(at, takesEffect).context, caller, requestId: "killed" }, batch).catch(
        (error: unknown) => expect(error).toBeInstanceOf(Killed),
      );
      const id = await pushAgain(caller, batch);
      await expectOnce(caller, id);
      prospects.add(id);
    }
    expect(prospects.size).toBe(points.length);
  },
);

/** Sends the batch as a device does, until each operation is applied. */
async function pushUntilApplied(context: ApiContext, caller: Caller, batch: OperationBatch): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    expect(attempt).toBeLessThan(100);
    const answer = await applyBatch({ context, caller, requestId: `${attempt}` }, batch).catch((error: unknown) => {
      if (!isTransient(error)) throw error;
    });
    const outcomes = answer?.results.map(({ outcome }) => outcome) ?? ["retry"];
    for (const outcome of outcomes) expect(["applied", "duplicate", "retry"]).toContain(outcome);
    if (!outcomes.includes("retry")) return answer?.results[0]?.id ?? 0;
  }
}

test("batches that are sent twice at once are applied once although every fifth call of the table fails", async () => {
  const caller = await newOwner(contextOn(db.direct));
  const [statusId = 0] = (await loadDictionary(db.direct, caller.companyId)).statuses.keys();
  db.plan(oneInFive);
  const batches = Array.from({ length: 4 }, () => batchOf(statusId));
  const ids = await Promise.all(
    batches.map(async (batch) => {
      const sent = [1, 2].map(() => pushUntilApplied(contextOn(db.table), caller, batch));
      return Promise.all(sent);
    }),
  );
  db.plan(() => pass);
  for (const [first = 0, second = 0] of ids) {
    expect(second).toBe(first);
    await expectOnce(caller, first);
  }
});
