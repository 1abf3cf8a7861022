/**
 * Tests a batch whose time ends before all of its operations are applied. The remaining operations get the outcome `retry`, and are applied
 * when they are sent again.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { pass } from "../../harness/faulty-dynamodb.ts";
import { newOwner } from "../../harness/warm-function.ts";

const db = faultyDynamoDb();

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
