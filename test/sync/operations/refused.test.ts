/**
 * Tests batches with operations that are not valid, do not fit into the time of the request, or occurred during a past assignment of the
 * prospect. Each gets a result of its own. An invalid operation blocks only the later operations on the same record.
 */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { contextOn } from "#shared/context.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { OperationResults } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { pass } from "../../harness/faulty-dynamodb.ts";
import { createProspect, updateProspect } from "../../harness/verbs.ts";
import { newOwner } from "../../harness/warm-function.ts";
import { newTimedStage } from "../stage.ts";

const db = faultyDynamoDb();
let caller: Caller;
beforeAll(async () => {
  caller = await newOwner(contextOn(db.direct));
});

/** Returns the result of each operation as the endpoint answers it. */
async function resultsOf(...operations: readonly Readonly<Record<string, unknown>>[]) {
  const sent = operations.map((one) => ({ opId: randomUUID(), ...one }));
  const batch = { context: contextOn(db.table), caller, requestId: "r" };
  const { results } = await applyBatch(batch, { deviceId: "tablet", operations: sent });
  return OperationResults.parse({ results }).results;
}

const outcomes = async (...operations: readonly Readonly<Record<string, unknown>>[]): Promise<string[]> =>
  (await resultsOf(...operations)).map(({ outcome }) => outcome);

test.each([0, -1, 1.5, 2 ** 53, 1e300, "7", true, null, [7], {}])(
  "an operation with the id %j is rejected, and the other operations of the batch are applied",
  async (id) => {
    const clientRecordId = randomUUID();
    const faulty = [
      { type: "prospect.update", fields: { name: "new" } },
      { type: "prospect.delete", fields: {} },
      { type: "prospect.tags", fields: { tagIds: [] } },
      { type: "note.create", fields: { body: "new" } },
      { type: "appointment.create", fields: { title: "new", startAt: "2026-06-01T10:00:00Z" } },
      { type: "appointment.update", fields: { title: "new" } },
    ].map((one) => ({ ...one, id }));
    const results = await resultsOf({ type: "prospect.create", clientRecordId, fields: { name: "good" } }, ...faulty, {
      type: "note.create",
      clientRecordId,
      fields: { body: "good" },
    });
    expect(results.map(({ outcome }) => outcome)).toEqual(["applied", ...faulty.map(() => "rejected"), "applied"]);
    for (const { id: named } of results.slice(1, -1)) expect(named).toBeNull();
  },
);

test("an invalid operation blocks later ones on its prospect, by whatever name, until they are sent alone", async () => {
  const clientRecordId = randomUUID();
  const created = { type: "prospect.create", fields: { name: "a" } };
  const [first, other] = await resultsOf({ ...created, clientRecordId }, { ...created, clientRecordId: randomUUID() });
  const id = first?.id;
  const faulty = { type: "prospect.update", fields: { emailAddress: "bad" } };
  const good = { type: "prospect.update", fields: { name: "b" } };
  expect(await outcomes({ ...faulty, clientRecordId }, { ...good, id })).toEqual(["rejected", "blocked"]);
  const [later, free] = [
    { ...good, clientRecordId, opId: randomUUID() },
    { ...good, id: other?.id, opId: randomUUID() },
  ];
  expect(await outcomes({ ...faulty, id }, later, free)).toEqual(["rejected", "blocked", "applied"]);
  expect(await outcomes(later, free)).toEqual(["applied", "duplicate"]);
  expect(await outcomes({ ...faulty, id }, later, free)).toEqual(["rejected", "duplicate", "duplicate"]);
  expect(await outcomes({ ...faulty, clientRecordId: "no uuid" }, { ...good, id })).toEqual(["rejected", "applied"]);
});

test("operations that do not fit into the time of the request get the outcome retry, and use up no opId", async () => {
  const caller = await newOwner(contextOn(db.direct));
  const [done, left] = [randomUUID(), randomUUID()];
  const operations = [
    ...[{ type: "prospect.create", clientRecordId: done, fields: { name: "done" } }],
    ...[{ type: "prospect.update", clientRecordId: done, fields: { name: "late" } }],
    ...[{ type: "note.create", clientRecordId: done, fields: { body: "late" } }],
    ...[{ type: "prospect.create", clientRecordId: left, fields: { name: "left" } }],
  ].map((one) => ({ opId: randomUUID(), ...one }));
  const batch = { deviceId: "tablet", operations };
  // The first transaction succeeds. All later transactions hang until the time of the batch ends.
  let transactions = 0;
  db.plan((operation) => (operation === "TransactWriteItems" && ++transactions > 1 ? { kind: "hang" } : pass));
  const endsAt = Date.now() + 6_000;
  const { results } = await stoppedAt(
    () => endsAt - Date.now(),
    () => applyBatch({ context: contextOn(db.sdk), caller, requestId: "first" }, batch),
  );
  db.plan(() => pass);
  const first = results.map(({ outcome }) => outcome).sort();
  expect(first).toEqual(["applied", "retry", "retry", "retry"]);

  const again = await applyBatch({ context: contextOn(db.sdk), caller, requestId: "again" }, batch);
  expect(again.results.map(({ outcome }) => outcome).sort()).toEqual(["applied", "applied", "applied", "duplicate"]);
});

const HOUR_MS = 3_600_000;
const DAYS = 59;
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
