/** Tests `GET /api/changes` with faults: failing calls to the table, killed flushes, and rights that change between two pages. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { contextKilledAt, unlessKilled } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { createProspect, deleteProspect, updateProspect } from "../harness/verbs.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";
import { longScripts, playRandom, scripts } from "./changes-law.ts";
import { feedOf } from "./feed.ts";
import { oneInFive } from "./one-in-five.ts";
import { newStage, newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();
const all = { least: 1, settleMs: 0 };

test("clients hold what the lists show although every fifth call of the table fails", {
  tags: ["sized"],
  // With the size `wide`, the test takes longer than the time-out of other tests.
  timeout: 12 * 3_600_000,
}, async () => {
  // The writes of the sequences do not go through the proxy that makes the faults. Only devices and flushes get faults.
  db.plan(oneInFive);
  const [sequences, count] = sized({ short: [scripts(5, 20), 1], wide: [longScripts, 1_000] } as const);
  await playRandom(sequences, count, async () => {
    const stage = await newTimedStage(db);
    return { ...stage, disturbed: contextOn(db.table, stage.context.clock) };
  });
});

/** Returns the last cursor, and for each prospect the operation of its last item and the version of its row. */
async function readAll(caller: Caller, from: string | undefined, limit = 500) {
  const feed = feedOf(warmFunction(db, { now: () => Date.now() }), caller, { limit, cursor: from });
  const items = new Map<number, string>();
  for (const { type, id, op, version } of await feed.rest()) {
    if (type === "prospects") items.set(id, `${op} ${rowVersionOf(version)}`);
  }
  return { cursor: feed.cursor(), items };
}

test.each([false, true])(
  "a flush that is killed at any call loses no change (after the call: %s)",
  { tags: ["sized"] },
  async (takesEffect) => {
    const context = warmFunction(db, { now: () => Date.now() });
    const changed = async () => {
      const caller = await newOwner(context);
      const ids: number[] = [];
      for (const name of ["A", "B", "C"]) ids.push((await createProspect(context, caller, { name })).id);
      await flush(context, caller.companyId, all);
      const { cursor } = await readAll(caller, undefined);
      const [a = 0, b = 0, c = 0] = ids;
      await updateProspect(context, caller, a, { name: "A2" });
      await deleteProspect(context, caller, b);
      await updateProspect(context, caller, c, { name: "C2" });
      await updateProspect(context, caller, c, { name: "C3" });
      return {
        caller,
        cursor,
        expected: new Map([
          [a, "upsert 2"],
          [b, "remove 2"],
          [c, "upsert 3"],
        ]),
      };
    };
    const whole = contextKilledAt(Number.POSITIVE_INFINITY, takesEffect, db.direct);
    await flush(whole.context, (await changed()).caller.companyId, all);
    for (const at of killPointsOf(whole.calls(), takesEffect ? 1 : 0)) {
      const { caller, cursor, expected } = await changed();
      await flush(contextKilledAt(at, takesEffect, db.direct).context, caller.companyId, all).catch(unlessKilled);
      const afterKill = await readAll(caller, cursor, 2);
      expect([at, afterKill.items]).toEqual([at, expected]);
      await flush(context, caller.companyId, all);
      // Two clients have the same cursor. The first client has already read the changes before this flush, and the second client reads them
      // now. Both must get the same items. Then a prospect is created, and the first client must get it with its new cursor.
      expect((await readAll(caller, cursor, 2)).items).toEqual(expected);
      const { id } = await createProspect(context, caller, { name: "D" });
      const { items } = await readAll(caller, afterKill.cursor);
      expect(items.get(id)).toBe("upsert 1");
    }
  },
);

test("a cursor whose data key cannot be decrypted is a fault of the service, and not of the client", async () => {
  const context = warmFunction(db, { now: () => Date.now() });
  const caller = await newOwner(context);
  const { cursor } = await readAll(caller, undefined);
  const error = new Error("the key is disabled");
  const withoutKey = { ...context, secrets: { ...context.secrets, open: () => Promise.reject(error) } };
  await expect(readChanges(withoutKey, caller, { limit: 1, types: undefined, cursor })).rejects.toBe(error);
});

test("a user whose rights change between two pages begins anew, and then has exactly what the new rights show", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  const ids: number[] = [];
  for (let i = 0; i < 6; i++) {
    const assignedToUserId = i % 2 === 0 ? rep.userId : null;
    ids.push((await createProspect(context, owner, { name: `n${i}`, assignedToUserId })).id);
  }
  const seer: Caller = { ...rep, permissions: ["canViewAllProspects"] };
  const page = (caller: Caller, cursor: string | undefined) =>
    readChanges(context, caller, { limit: 2, types: undefined, cursor });
  for (const [before, after, visible] of [
    [rep, seer, ids],
    [seer, rep, ids.filter((_, i) => i % 2 === 0)],
  ] as const) {
    const { cursor } = await page(before, undefined);
    await expect(page(after, cursor)).rejects.toMatchObject({ code: "sync_reset_required" });
    expect([...(await readAll(after, undefined, 2)).items.keys()]).toEqual(visible);
    // The caller has the old rights again, so the cursor from before the change of rights is valid again.
    expect((await page(before, cursor)).phase).toBe("snapshot");
  }
});
