/**
 * Tests the claims of operations that create or delete a prospect: what they cost, and that each operation has one effect and each opId
 * belongs to one applied operation, although the claim and the effect are written separately.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { stoppedAt } from "#shared/deadline.ts";
import * as limits from "#shared/limits.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { createProspect, deleteProspect, updateProspect } from "#shared/prospects/write.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import type { SentOperation } from "#shared/sync/operations/schema.ts";
import { faultyDynamoDb } from "../../harness/fault-test.ts";
import { type Fault, pass } from "../../harness/faulty-dynamodb.ts";
import { newTimedStage } from "../stage.ts";
import { create, operation } from "./push.ts";

const db = faultyDynamoDb();

/** A stage whose context uses the table through the proxy, so that its calls can fail. */
async function stage() {
  const { context, owner, time } = await newTimedStage(db, (clock) => contextOn(db.table, clock));
  const send = async (...operations: readonly SentOperation[]) => {
    const batch = { deviceId: "tablet", operations: [...operations] };
    return (await applyBatch({ context, caller: owner, requestId: "r" }, batch)).results;
  };
  const one = async (sent: SentOperation) => (await send(sent))[0] ?? expect.fail();
  const outcome = async (sent: SentOperation) => {
    const { outcome: reached, problem } = await one(sent);
    return problem === undefined ? reached : `${reached}: ${problem.code}`;
  };
  return { context, owner, time, send, one, outcome };
}

const remove = (id: number, more: object = {}): SentOperation =>
  operation("prospect.delete", { id, fields: {}, ...more });

/** Sends the operation in a request whose time ends while its call to DynamoDB with this name hangs. Returns the outcome. */
async function outcomeInTime(hanging: string, send: () => Promise<string>): Promise<string> {
  db.plan((name): Fault => (name === hanging ? { kind: "hang" } : pass));
  const endsAt = Date.now() + 1_500;
  try {
    return await stoppedAt(() => endsAt - Date.now(), send);
  } finally {
    db.plan(() => pass);
  }
}

/** Returns a creation, and a deletion of a new prospect. */
async function bothKinds(context: ApiContext, caller: Caller): Promise<SentOperation[]> {
  return [create({ name: "a" }), remove((await createProspect(context, caller, { name: "b" })).id)];
}

const rowOf = async ({ table }: ApiContext, { companyId }: Caller, id: number) =>
  storedProspect(await table.get(keys.prospect(companyId, id)));

const MISMATCH = "rejected: idempotency_mismatch";

describe("a creation or deletion by an operation", () => {
  test("costs one write unit more than the single request, or one less if it has a status", async () => {
    const { context, owner, one } = await stage();
    const made = [await createProspect(context, owner, {}), await createProspect(context, owner, {})];
    const [first, second] = made.map(({ id }) => id);
    const [statusId = 0] = (await loadDictionary(db.direct, owner.companyId)).statuses.keys();
    const pairs: [single: () => Promise<unknown>, sent: SentOperation, more: number][] = [
      [() => createProspect(context, owner, { name: "a", clientRecordId: randomUUID() }), create({ name: "a" }), 1],
      [() => deleteProspect(context, owner, first ?? 0), remove(second ?? 0), 1],
      [
        () => createProspect(context, owner, { currentStatusId: statusId, clientRecordId: randomUUID() }),
        create({ currentStatusId: statusId }),
        -1,
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

  test.each(["PutItem", "TransactWriteItems"])(
    "gets the outcome retry each time the request ends during its %s, and is applied once afterwards",
    async (hanging) => {
      const { context, owner, outcome } = await stage();
      for (const sent of await bothKinds(context, owner)) {
        for (let attempt = 0; attempt < 2; attempt++) {
          expect(await outcomeInTime(hanging, () => outcome(sent))).toBe("retry");
        }
        expect([await outcome(sent), await outcome(sent)]).toEqual(["applied", "duplicate"]);
      }
    },
  );

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

  test("is a duplicate if an earlier release has written its receipt in the transaction", async () => {
    const { context, owner, one, outcome } = await stage();
    for (const sent of await bothKinds(context, owner)) {
      const { id } = await one(sent);
      const key = keys.receipt(owner.companyId, owner.userId, sent.opId);
      const { shape: _, subject: __, ...row } = (await context.table.get(key)) ?? {};
      await db.direct.batchPut([{ ...row, ...key, id, version: 7 }]);
      expect(await one(sent)).toMatchObject({ outcome: "duplicate", id, version: shownVersion(7) });
      expect(await outcome({ ...sent, fields: {}, type: "prospect.create", clientRecordId: randomUUID() })).toBe(
        MISMATCH,
      );
    }
  });

  test("has a claim that an earlier release does not read as the receipt of an applied operation", async () => {
    const { context, owner, outcome } = await stage();
    const sent = create();
    expect(await outcomeInTime("TransactWriteItems", () => outcome(sent))).toBe("retry");
    const row = await context.table.get(keys.receipt(owner.companyId, owner.userId, sent.opId));
    expect(row).toMatchObject({ type: "receipt", shape: 2 });
    expect(row).not.toHaveProperty("version");
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

  test("is free at once if the operation can never be applied", async () => {
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

  test("is held while the operation may still be applied, and then used by the operation that is sent next", async () => {
    const { context, owner, time, outcome } = await stage();
    const { id } = await createProspect(context, owner, {});
    for (const first of await bothKinds(context, owner)) {
      for (const next of [create(), operation("note.create", { id, fields: { body: "x" } })]) {
        const claimed: SentOperation = { ...first, opId: next.opId };
        expect(await outcomeInTime("TransactWriteItems", () => outcome(claimed))).toBe("retry");
        time.nowMs += limits.claimHeldMs - 2_000;
        expect(await outcome(next)).toBe("retry");
        // Each attempt of the claiming operation begins the time again.
        expect(await outcomeInTime("TransactWriteItems", () => outcome(claimed))).toBe("retry");
        time.nowMs += limits.claimHeldMs - 2_000;
        expect(await outcome(next)).toBe("retry");
        time.nowMs += 4_000;
        expect(await outcome(next)).toBe("applied");
        expect(await outcome(claimed)).toBe(MISMATCH);
      }
    }
  });

  test("never belongs to two applied operations, even if the transaction of the first one is slow", async () => {
    const { context, owner, time, outcome } = await stage();
    const { id } = await createProspect(context, owner, {});
    for (const first of await bothKinds(context, owner)) {
      const next: SentOperation = { ...operation("note.create", { id, fields: { body: "x" } }), opId: first.opId };
      const { reached, release, transaction } = slowTransaction();
      db.plan((name) => (name === "TransactWriteItems" ? transaction() : pass));
      const slow = outcome(first);
      await reached;
      time.nowMs += 1_000;
      expect(await outcome(next)).toBe("retry");
      expect(await outcome({ ...create(), opId: first.opId })).toBe("retry");
      release();
      expect(await slow).toBe("applied");
      expect(await outcome(next)).toBe(MISMATCH);
    }
    for await (const note of listNotes(context, owner, id)) expect.fail(`the note ${note.id} was created`);
  });

  test("never belongs to two applied operations, even if the first one is sent again while the next one reads its claim", async () => {
    const { time, outcome } = await stage();
    const [first, next] = [create({ name: "a" }), create({ name: "b" })];
    const other = { ...next, opId: first.opId };
    expect(await outcomeInTime("TransactWriteItems", () => outcome(first))).toBe("retry");
    time.nowMs += limits.claimHeldMs + 1_000;
    const { reached, release, transaction } = slowTransaction();
    let again = Promise.resolve("not sent");
    const meanwhile = async () => {
      again = outcome(first);
      await reached;
    };
    let reads = 0;
    db.plan((name): Fault => {
      if (name === "TransactWriteItems") return transaction();
      return name === "BatchGetItem" && ++reads === 1 ? { kind: "late", meanwhile } : pass;
    });
    expect(await outcome(other)).toBe("retry");
    release();
    expect(await again).toBe("applied");
    expect(await outcome(other)).toBe(MISMATCH);
  });
});

/**
 * Returns `transaction`, which plans the next transaction. DynamoDB gets the first one only after `release` is called. `reached` resolves
 * when this transaction has been sent.
 */
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
