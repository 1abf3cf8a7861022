/** Kills the function that applies a batch at each of its calls, and sends the batch again. Each operation must have its effect once. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { isTransient } from "#shared/errors.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import type { OperationBatch, OperationResults } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { pass } from "../../harness/faulty-dynamodb.ts";
import { contextKilledAt, unlessKilled } from "../../harness/killable.ts";
import { present } from "../../harness/shapes.ts";
import { newOwner } from "../../harness/warm-function.ts";
import { oneInFive } from "../one-in-five.ts";

const db = faultyDynamoDb();

/** Returns operations on two prospects. The batch creates both, and deletes the second one. */
function batchOf(statusId: number): OperationBatch {
  const [kept, deleted] = [randomUUID(), randomUUID()];
  const [title, startAt] = ["Inspection", "2040-01-01T10:00:00Z"];
  const operations = [
    { type: "prospect.create", fields: { name: "first", currentStatusId: statusId } },
    { type: "prospect.update", fields: { name: "second", currentStatusId: null } },
    { type: "note.create", fields: { body: "once" } },
    { type: "appointment.create", fields: { title, startAt } },
    { type: "prospect.tags", fields: { tagIds: [] } },
    { type: "prospect.create", fields: { name: "gone" }, clientRecordId: deleted },
    { type: "prospect.delete", fields: {}, clientRecordId: deleted },
  ];
  const sent = operations.map((one) => ({ opId: randomUUID(), clientRecordId: kept, ...one }));
  return { deviceId: "tablet", operations: sent };
}

/** Returns the ids of both prospects. Checks that the deletion has written the version that follows the creation. */
function prospectsOf({ results }: OperationResults): Ids {
  const [created, deleted] = results.slice(-2);
  expect([created?.id, created?.version]).toEqual([deleted?.id, shownVersion(1)]);
  expect(deleted?.version).toBe(shownVersion(2));
  return { kept: results[0]?.id ?? 0, deleted: deleted?.id ?? 0 };
}

interface Ids {
  readonly kept: number;
  readonly deleted: number;
}

async function pushAgain(caller: Caller, batch: OperationBatch): Promise<Ids> {
  const answer = await applyBatch({ context: contextOn(db.direct), caller, requestId: "again" }, batch);
  for (const { outcome } of answer.results) expect(["applied", "duplicate"]).toContain(outcome);
  return prospectsOf(answer);
}

async function expectOnce(caller: Caller, { kept: id, deleted }: Ids): Promise<void> {
  const context = contextOn(db.direct);
  const gone = storedProspect(await context.table.get(keys.prospect(caller.companyId, deleted)));
  expect([gone.version, gone.deletedAt]).toEqual([2, gone.updatedAt]);
  const shown = await readProspect(context, caller, id);
  expect(shown).toMatchObject({ name: "second", currentStatus: null, appointments: [{ title: "Inspection" }] });
  expect([shown.statusHistory.length, shown.appointments.length]).toEqual([2, 1]);
  expect(await Array.fromAsync(listNotes(context, caller, id), ({ body }) => body)).toEqual(["once"]);
}

test.each([false, true])("a batch that is killed at any call is applied once (after it: %s)", async (takesEffect) => {
  const caller = await newOwner(contextOn(db.direct));
  const [statusId = 0] = (await loadDictionary(db.direct, caller.companyId)).statuses.keys();
  const whole = contextKilledAt(Number.POSITIVE_INFINITY, takesEffect, db.direct);
  await applyBatch({ context: whole.context, caller, requestId: "whole" }, batchOf(statusId));
  const prospects = new Set<number>();
  const points = Array.from({ length: whole.calls() }, (_, i) => i + 1);
  for (const at of points) {
    const batch = batchOf(statusId);
    const { context } = contextKilledAt(at, takesEffect, db.direct);
    await applyBatch({ context, caller, requestId: "killed" }, batch).catch(unlessKilled);
    const ids = await pushAgain(caller, batch);
    await expectOnce(caller, ids);
    prospects.add(ids.kept).add(ids.deleted);
  }
  expect(prospects.size).toBe(2 * points.length);
  // Each prospect of the company was created by one of the batches. No batch has created a prospect twice.
  const { total } = await listProspects(contextOn(db.direct), caller, ListQuery.parse({}));
  expect(total).toBe(points.length + 1);
});

/** Sends the batch as a device does, until each operation is applied. */
async function pushUntilApplied(context: ApiContext, caller: Caller, batch: OperationBatch): Promise<Ids> {
  for (let attempt = 1; ; attempt++) {
    expect(attempt).toBeLessThan(100);
    const answer = await applyBatch({ context, caller, requestId: `${attempt}` }, batch).catch((error: unknown) => {
      if (!isTransient(error)) throw error;
    });
    const outcomes = answer?.results.map(({ outcome }) => outcome) ?? ["retry"];
    for (const outcome of outcomes) expect(["applied", "duplicate", "retry"]).toContain(outcome);
    if (answer !== undefined && !outcomes.includes("retry")) return prospectsOf(answer);
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
  for (const [first, second] of ids) {
    expect(second).toEqual(first);
    await expectOnce(caller, present(first));
  }
});
