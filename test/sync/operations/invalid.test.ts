/**
 * Tests batches in which some operations are not valid. Each of them gets a result of its own, and blocks the later operations on the same
 * record and no others.
 */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { contextOn } from "#shared/context.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { OperationResults } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { newOwner } from "../../harness/warm-function.ts";

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

test("an invalid operation blocks later ones on its prospect, even if one has the id and the other the clientRecordId", async () => {
  const clientRecordId = randomUUID();
  const [created] = await resultsOf({ type: "prospect.create", clientRecordId, fields: { name: "a" } });
  const id = created?.id;
  const faulty = { type: "prospect.update", fields: { emailAddress: "bad" } };
  const good = { type: "prospect.update", fields: { name: "b" } };
  expect(await outcomes({ ...faulty, clientRecordId }, { ...good, id })).toEqual(["rejected", "blocked"]);
  expect(await outcomes({ ...faulty, id }, { ...good, clientRecordId })).toEqual(["rejected", "blocked"]);
  expect(await outcomes({ ...faulty, clientRecordId: "no uuid" }, { ...good, id })).toEqual(["rejected", "applied"]);
});
