/** Tests the receipts of operations that create or delete a prospect: their cost, and that each opId belongs to one applied operation. */
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
import type { SentOperation } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { type Fault, pass } from "../../harness/faulty-dynamodb.ts";
import { createProspect, deleteProspect, updateProspect } from "../../harness/verbs.ts";
import { newTimedStage } from "../stage.ts";
import { create, operation } from "./push.ts";

const db = faultyDynamoDb();

async function stage() {
  const { context, owner } = await newTimedStage(db, (clock) => contextOn(db.sdk, clock));
  const send = async (...operations: readonly SentOperation[]) => {
    const batch = { deviceId: "tablet", operations: [...operations] };
    return (await applyBatch({ context, caller: owner, requestId: "r" }, batch)).results;
  };
  const one = async (sent: SentOperation) => (await send(sent))[0] ?? expect.fail();
  const outcome = async (sent: SentOperation) => {
    const { outcome: reached, problem } = await one(sent);
    return problem === undefined ? reached : `${reached}: ${problem.code}`;
  };
  return { context, owner, send, one, outcome };
}

const remove = (id: number, more: object = {}): SentOperation =>
  operation("prospect.delete", { id, fields: {}, ...more });

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
