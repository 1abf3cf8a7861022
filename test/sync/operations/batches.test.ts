/**
 * Tests the receipts of operations that create or delete a prospect: their cost, and that each opId belongs to one applied operation. In a
 * batch, an invalid or late operation gets a result of its own, and blocks only the later operations on the same record.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { OperationResults, type SentOperation } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { type Fault, pass } from "../../harness/faulty-dynamodb.ts";
import { createProspect, deleteProspect, updateProspect } from "../../harness/verbs.ts";
import { newTimedStage } from "../stage.ts";
import { create, operation } from "./push.ts";

const db = faultyDynamoDb();

async function stage() {
  const { context, owner, reps, time } = await newTimedStage(db, (clock) => contextOn(db.sdk, clock));
  const sendAs = async (caller: Caller, ...operations: readonly SentOperation[]) => {
    const batch = { deviceId: "tablet", operations: [...operations] };
    return OperationResults.parse(await applyBatch({ context, caller, requestId: "r" }, batch)).results;
  };
  const send = (...operations: readonly SentOperation[]) => sendAs(owner, ...operations);
  const outcomes = async (...operations: readonly SentOperation[]) =>
    (await send(...operations)).map((result) => result.outcome);
  const one = async (sent: SentOperation) => (await send(sent))[0] ?? expect.fail();
  const outcome = async (sent: SentOperation) => {
    const { outcome: reached, problem } = await one(sent);
    return problem === undefined ? reached : `${reached}: ${problem.code}`;
  };
  return { context, owner, reps, time, sendAs, send, outcomes, one, outcome };
}

const remove = (id: number): SentOperation => operation("prospect.delete", { id, fields: {} });

async function bothKinds(context: ApiContext, caller: Caller): Promise<SentOperation[]> {
  return [create({ name: "a" }), remove((await createProspect(context, caller, { name: "b" })).id)];
}

const rowOf = async ({ table }: ApiContext, { companyId }: Caller, id: number) =>
  storedProspect(await table.get(keys.prospect(companyId, id)));

const MISMATCH = "rejected: idempotency_mismatch";

describe("a creation or deletion by an operation", () => {
  test("costs two write units more than the single request, and none if it has a status", async () => {
    const { context, owner, one } = await stage();
    const made = [await createProspect(context, owner, {}), await createProspect(context, owner, {})];
    const [first, second] = made.map(({ id }) => id);
    const [statusId = 0] = (await loadDictionary(db.direct, owner.companyId)).statuses.keys();
    const pairs: [single: () => Promise<unknown>, sent: SentOperation, more: number][] = [
      [() => createProspect(context, owner, { name: "a", clientRecordId: randomUUID() }), create({ name: "a" }), 2],
      [() => deleteProspect(context, owner, first ?? 0), remove(second ?? 0), 2],
      [
        () => createProspect(context, owner, { currentStatusId: statusId, clientRecordId: randomUUID() }),
        create({ currentStatusId: statusId }),
        0,
      ],
    ];
    for (const [single, sent, more] of pairs) {
      const alone = await metered(single);
      const pushed = await metered(() => one(sent));
      expect(pushed.result.outcome).toBe("applied");
      expect(pushed.usage.writeUnits - alone.usage.writeUnits).toBe(more);
      expect(await one(sent)).toEqual({ ...pushed.result, outcome: "duplicate" });
    }
  });

  test("has one effect if it is sent five times at once: one result is applied, and the others are duplicates", async () => {
    const { context, owner, send, one } = await stage();
    for (const sent of await bothKinds(context, owner)) {
      const results = (await Promise.all(Array.from({ length: 5 }, () => send(sent)))).flat();
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(["applied", ...Array(4).fill("duplicate")]);
      expect(new Set(results.map(({ id, version }) => `${id} ${version}`)).size).toBe(1);
      expect((await one(sent)).outcome).toBe("duplicate");
    }
  });

  test("gets the outcome retry each time the request ends during its transaction, and is applied once afterwards", async () => {
    const { context, owner, outcome } = await stage();
    for (const sent of await bothKinds(context, owner)) {
      for (let attempt = 0; attempt < 2; attempt++) {
        db.plan((name): Fault => (name === "TransactWriteItems" ? { kind: "hang" } : pass));
        const endsAt = Date.now() + 1_500;
        const late = stoppedAt(
          () => endsAt - Date.now(),
          () => outcome(sent),
        );
        expect(await late).toBe("retry");
        db.plan(() => pass);
      }
      expect([await outcome(sent), await outcome(sent)]).toEqual(["applied", "duplicate"]);
    }
  });

  test("is a duplicate with the first result after later changes", async () => {
    const { context, owner, one } = await stage();
    const made = create({ name: "a" });
    const { id } = await one(made);
    await updateProspect(context, owner, id ?? 0, { name: "b" });
    const gone = remove(id ?? 0);
    expect(await one(gone)).toMatchObject({ outcome: "applied", id, version: shownVersion(3) });
    expect(await one(made)).toMatchObject({ outcome: "duplicate", id, version: shownVersion(1) });
    expect(await one(gone)).toMatchObject({ outcome: "duplicate", id, version: shownVersion(3) });
  });

  test("is rejected if another request has done the same", async () => {
    const { context, owner, outcome } = await stage();
    const clientRecordId = randomUUID();
    const { id } = await createProspect(context, owner, { clientRecordId });
    expect(await outcome(create({}, clientRecordId))).toBe("rejected: conflict");
    await deleteProspect(context, owner, id);
    const [first, other] = [remove(id), remove(id)];
    expect(await outcome(first)).toBe("rejected: not_found");
    const { id: deletedByDevice } = await createProspect(context, owner, {});
    expect(await outcome(remove(deletedByDevice))).toBe("applied");
    expect(await outcome({ ...other, id: deletedByDevice })).toBe("rejected: not_found");
  });
});

describe("the opId of a creation or deletion", () => {
  test("belongs to it once it is applied", async () => {
    const { context, owner, outcome } = await stage();
    const { id } = await createProspect(context, owner, {});
    for (const sent of await bothKinds(context, owner)) {
      expect(await outcome(sent)).toBe("applied");
      const { opId } = sent;
      const others: SentOperation[] = [
        { ...sent, baseVersion: 99, fields: { name: "other" } },
        { ...create(), opId },
        { ...remove(id), opId },
        { ...operation("note.create", { id, fields: { body: "x" } }), opId },
        { ...operation("prospect.update", { id, fields: { name: "x" } }), opId },
      ];
      for (const other of others) expect(await outcome(other)).toBe(MISMATCH);
      expect(await outcome(sent)).toBe("duplicate");
    }
    expect(await rowOf(context, owner, id)).toMatchObject({ name: null, version: 1 });
  });

  test("cannot be the opId of an applied operation of another kind", async () => {
    const { context, owner, outcome } = await stage();
    const { id } = await createProspect(context, owner, {});
    const note = operation("note.create", { id, fields: { body: "x" } });
    expect(await outcome(note)).toBe("applied");
    for (const other of await bothKinds(context, owner)) {
      expect(await outcome({ ...other, opId: note.opId })).toBe(MISMATCH);
    }
    expect(await outcome(note)).toBe("duplicate");
  });

  test("is immediately available to another operation if the first operation can never be applied", async () => {
    const { context, owner, outcome } = await stage();
    const { id, clientRecordId = "" } = await createProspect(context, owner, { clientRecordId: randomUUID() });
    for (const correct of [
      create({ name: "a" }),
      remove((await createProspect(context, owner, {})).id),
      operation("note.create", { id, fields: { body: "x" } }),
    ]) {
      const taken = create({}, clientRecordId);
      expect(await outcome(taken)).toBe("rejected: conflict");
      const corrected = { ...correct, opId: taken.opId };
      expect(await outcome(corrected)).toBe("applied");
      expect(await outcome(taken)).toBe(MISMATCH);
      expect(await outcome(corrected)).toBe("duplicate");
    }
  });

  test("never belongs to two applied operations, even if the transaction of the first one is slow", async () => {
    const { context, owner, outcome } = await stage();
    const { id } = await createProspect(context, owner, {});
    for (const first of await bothKinds(context, owner)) {
      const next: SentOperation = { ...operation("note.create", { id, fields: { body: "x" } }), opId: first.opId };
      const { reached, release, transaction } = slowTransaction();
      db.plan((name) => (name === "TransactWriteItems" ? transaction() : pass));
      const slow = outcome(first);
      await reached;
      expect(await outcome(next)).toBe("applied");
      release();
      expect(await slow).toBe(MISMATCH);
      expect(await outcome(next)).toBe("duplicate");
    }
    expect(await Array.fromAsync(listNotes(context, owner, id))).toHaveLength(2);
  });
});

/** `transaction` delays the first transaction until `release` is called. `reached` resolves when that transaction has been sent. */
function slowTransaction() {
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const meanwhile = () => {
    reach();
    return released;
  };
  let transactions = 0;
  const transaction = (): Fault => (++transactions === 1 ? { kind: "early", meanwhile } : pass);
  return { reached, release, transaction };
}

test.each([0, -1, 1.5, 2 ** 53, 1e300, "7", true, null, [7], {}])(
  "an operation with the id %j is rejected, and the other operations of the batch are applied",
  async (id) => {
    const { send } = await stage();
    const clientRecordId = randomUUID();
    const faulty = [
      operation("prospect.update", { id, fields: { name: "new" } }),
      operation("prospect.delete", { id, fields: {} }),
      operation("prospect.tags", { id, fields: { tagIds: [] } }),
      operation("note.create", { id, fields: { body: "new" } }),
      operation("appointment.create", { id, fields: { title: "new", startAt: "2026-06-01T10:00:00Z" } }),
      operation("appointment.update", { id, fields: { title: "new" } }),
    ];
    const note = operation("note.create", { clientRecordId, fields: { body: "good" } });
    const results = await send(create({ name: "good" }, clientRecordId), ...faulty, note);
    expect(results.map(({ outcome }) => outcome)).toEqual(["applied", ...faulty.map(() => "rejected"), "applied"]);
    for (const { id: named } of results.slice(1, -1)) expect(named).toBeNull();
  },
);

test("an invalid operation blocks later ones on its prospect, by whatever name, until they are sent alone", async () => {
  const { send, outcomes } = await stage();
  const clientRecordId = randomUUID();
  const [first, other] = await send(create({ name: "a" }, clientRecordId), create({ name: "a" }));
  const id = first?.id;
  const faulty = (record: object) => operation("prospect.update", { fields: { emailAddress: "bad" }, ...record });
  const good = (record: object) => operation("prospect.update", { fields: { name: "b" }, ...record });
  expect(await outcomes(faulty({ clientRecordId }), good({ id }))).toEqual(["rejected", "blocked"]);
  const [later, free] = [good({ clientRecordId }), good({ id: other?.id })];
  expect(await outcomes(faulty({ id }), later, free)).toEqual(["rejected", "blocked", "applied"]);
  expect(await outcomes(later, free)).toEqual(["applied", "duplicate"]);
  expect(await outcomes(faulty({ id }), later, free)).toEqual(["rejected", "duplicate", "duplicate"]);
  expect(await outcomes(faulty({ clientRecordId: "no uuid" }), good({ id }))).toEqual(["rejected", "applied"]);
});

test("operations that do not fit into the time of the request get the outcome retry, and use up no opId", async () => {
  const { outcomes } = await stage();
  const clientRecordId = randomUUID();
  const batch = [
    create({ name: "done" }, clientRecordId),
    operation("prospect.update", { clientRecordId, fields: { name: "late" } }),
    operation("note.create", { clientRecordId, fields: { body: "late" } }),
    create({ name: "left" }),
  ];
  // The first transaction succeeds. All later transactions hang until the time of the batch ends.
  let transactions = 0;
  db.plan((name) => (name === "TransactWriteItems" && ++transactions > 1 ? { kind: "hang" } : pass));
  const endsAt = Date.now() + 6_000;
  const first = await stoppedAt(
    () => endsAt - Date.now(),
    () => outcomes(...batch),
  );
  db.plan(() => pass);
  expect(first.sort()).toEqual(["applied", "retry", "retry", "retry"]);
  expect((await outcomes(...batch)).sort()).toEqual(["applied", "applied", "applied", "duplicate"]);
});

const HOUR_MS = 3_600_000;
const DAYS = 59;
const STEP = 7;

test("a note of any day is accepted after the prospect had another assignee on each of 59 days", async () => {
  const { context, owner, reps, time, sendAs } = await stage();
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
    const late = operation("note.create", { id, fields: { body: "late" }, occurredAt });
    return (await sendAs(repAt(day), late))[0]?.outcome;
  };
  for (const { day, occurredAt } of days) {
    expect(await outcome(day, occurredAt), `day ${day}`).toBe("applied");
    expect(await outcome(day + 1, occurredAt), `day ${day}, another rep`).toBe("rejected");
  }
});
