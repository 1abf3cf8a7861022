/** Tests the restore of one company: kills of the restore, and its effects on new ids, clients of the feed, devices and events. */
import { describe, expect, test } from "vitest";
import type { EventContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { COPIED_FROM_BACKUP_AT } from "#shared/webhooks/events/row-events.ts";
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { present } from "../../harness/shapes.ts";
import { createProspect, updateProspect } from "../../harness/verbs.ts";
import { restoredCompany } from "./restored-company.ts";

const company = await restoredCompany();
const { kills, storeOf, time, fresh, caller, ids, before } = company;
const { seen, rowsOf, damage, early, late, push, synced, restore, quietly } = company;

describe("a restored company", () => {
  test("gives new ids to new prospects, and lists them", async () => {
    const context = fresh();
    const highest = Math.max(
      ...(await rowsOf(caller.companyId)).flatMap(({ id }) => (typeof id === "number" ? [id] : [])),
    );
    const { id } = await createProspect(context, caller, { name: "New" });
    expect(id).toBeGreaterThan(highest);
    expect((await seen(fresh(), caller)).total).toBe(before.total + 1);
    await quietly();
    await restore();
    expect((await seen(fresh(), caller)).total).toBe(before.total);
  });

  test("has clients of the feed with exactly the restored prospects, whenever they were in sync", async () => {
    const known = new Map<number, unknown>();
    const earlier = await synced(undefined, known);
    await damage();
    const damaged = await synced(earlier, known);
    await quietly();
    await restore();
    const { items } = await listProspects(fresh(), caller, ListQuery.parse({ pageSize: "50" }));
    const listed = items
      .map(({ id, name }) => [id, name])
      .toSorted(([one], [another]) => Number(one) - Number(another));
    for (const cursor of [earlier, damaged]) {
      const copy = new Map(known);
      await synced(cursor, copy);
      expect([...copy].toSorted(([one], [another]) => one - another)).toEqual(listed);
    }
  });

  test("takes an operation of a device again if the restore has undone it", async () => {
    expect([await push(early), await push(late), await push(late)]).toEqual(["duplicate", "applied", "duplicate"]);
    await quietly();
    await restore();
    expect((await seen(fresh(), caller)).total).toBe(before.total);
    expect([await push(early), await push(late)]).toEqual(["duplicate", "applied"]);
    await quietly();
    await restore();
  });

  test("causes no event by its restore, and an event by its next change", async () => {
    await damage();
    await quietly();
    await restore();
    const rows = await rowsOf(caller.companyId);
    const brought = rows.filter((row) => row[COPIED_FROM_BACKUP_AT] !== undefined);
    expect(brought.length).toBeGreaterThan(0);
    const { table } = storeOf(TABLE);
    const context = eventContext();
    const deliveries = async () => (await rowsOf(caller.companyId)).filter(({ type }) => type === "delivery").length;
    const none = await deliveries();
    await publishChanges(
      context,
      batchReads(context),
      brought.map((after) => ({ before: undefined, after })),
    );
    expect(await deliveries()).toBe(none);
    const ben = keys.prospect(caller.companyId, ids[1] ?? 0);
    const old = await table.get(ben);
    time.now += 60_000;
    await updateProspect(fresh(), caller, ids[1] ?? 0, { name: "Changed" });
    await publishChanges(context, batchReads(context), [{ before: old, after: await table.get(ben) }]);
    expect(await deliveries()).toBe(none + 1);
    await quietly();
    await restore();
  });
});

const eventContext = (): EventContext => ({
  ...fresh(),
  wait: async () => undefined,
  queue: { send: async () => undefined, returnIn: async () => undefined },
  post: () => Promise.reject(new Error("nothing is sent")),
  savePoisonRecord: () => Promise.reject(new Error("no poison record is expected")),
  timeScale: 1,
  senders: 2,
});

/** A kill before a read leaves the same rows as a kill before the next write, so the test kills the restore only before its writes. */
test("a restore that is killed before any of its writes ends when it runs again", { tags: ["sized"] }, async () => {
  for (const write of killPoints(0)) {
    await damage();
    await quietly();
    const first = await kills.atWrite(write, restore);
    // The clock advances until the lock of a killed rebuild of the search index has expired.
    time.now += QUIET_MS;
    expect((await restore()).faults).toEqual([]);
    expect(await seen(fresh(), caller)).toEqual(before);
    if (!(first instanceof Killed)) break;
  }
  expect(present(before.prospects[0]).appointments).toHaveLength(1);
});
