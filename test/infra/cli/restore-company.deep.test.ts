/** Tests the restore of one company: its data, kills, refusals, and effects on ids, clients of `GET /api/changes`, devices and events. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { type ApiContext, contextOn, type EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { listTags } from "#shared/reference/values.ts";
import { activityReport } from "#shared/reports/activity.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { COPIED_FROM_BACKUP_AT } from "#shared/webhooks/events/row-events.ts";
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { companyPages } from "../../../infra/cli/company/rows.ts";
import { resume, suspend } from "../../../infra/cli/company/suspension.ts";
import { restoreCompany } from "../../../infra/cli/restore/company.ts";
import { restoreTable } from "../../../infra/cli/restore/point-in-time.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { present } from "../../harness/shapes.ts";
import {
  createAccount,
  createAppointment,
  createKey,
  createNote,
  createProspect,
  createTag,
  createWebhook,
  deleteProspect,
  deleteTag,
  disableUser,
  revokeKey,
  setTags,
  updateProspect,
} from "../../harness/verbs.ts";
import { newCompany } from "../../harness/warm-function.ts";
import { restorePoint, restoreScene } from "./restore-scene.ts";

const SOURCE = "Restored";

const { context: restoreContext, kills, storeOf } = await restoreScene();
const time = { now: Date.UTC(2026, 5, 1, 12) };
const clock = { now: () => time.now };
const fresh = (): ApiContext => contextOn(storeOf(TABLE).table, clock);

/** Returns the data of the company that the caller `by` sees. */
async function seen(context: ApiContext, by: Caller) {
  const { items, total } = await listProspects(context, by, ListQuery.parse({ pageSize: "50" }));
  const notes: string[] = [];
  for (const { id } of items) for await (const { body } of listNotes(context, by, id)) notes.push(`${id} ${body}`);
  const shown = items.map(({ id, name, tags, appointments }) => ({ id, name, tags, appointments }));
  const query = { from: "2026-05-01", to: "2026-07-01", groupBy: "user", timezone: "UTC" } as const;
  const { totals: activity, countedSince } = await activityReport(context, by, query);
  const tags = (await listTags(context, by.companyId)).map(({ value }) => value).toSorted();
  return {
    total,
    prospects: shown.toSorted((one, another) => one.id - another.id),
    notes: notes.toSorted(),
    tags,
    activity,
    countedSince,
  };
}

async function rows(): Promise<Item[]> {
  const pages = await Array.fromAsync(companyPages(storeOf(TABLE), caller.companyId));
  return pages.flatMap((page) => [...page.rows]);
}

async function fill(by: Caller): Promise<number[]> {
  const context = fresh();
  const tag = await createTag(context, by.companyId, { value: "Hot", color: "#FF0000" });
  const made: number[] = [];
  for (const name of ["Ann", "Ben", "Cid", "Dot"]) {
    const { id } = await createProspect(context, by, { name });
    await createNote(context, by, id, { body: `note on ${name}` });
    await createAppointment(context, by, id, { title: name, startAt: "2030-01-01T10:00:00.000Z" });
    await setTags(context, by, id, { tagIds: [tag.id] });
    made.push(id);
  }
  return made;
}

/** Makes changes that an admin may want to undo: it deletes and updates prospects, and adds a prospect, notes and a tag. */
async function damage(): Promise<void> {
  const context = fresh();
  const [ann = 0, ben = 0, cid = 0] = ids;
  await deleteProspect(context, caller, ann);
  await updateProspect(context, caller, ben, { name: "Overwritten" });
  const { id } = await createProspect(context, caller, { name: "From after" });
  await createNote(context, caller, id, { body: "lost" });
  await createNote(context, caller, cid, { body: "lost too" });
  for (const { id: tag } of await listTags(context, caller.companyId)) await deleteTag(context, caller.companyId, tag);
  await flush(context, caller.companyId, { least: 1, settleMs: 0, sumAfter: 0 });
  await updateProspect(fresh(), caller, cid, { name: "Unflushed" });
}

/** An operation that a device sends before the restore point. */
const early = pushedCreation();
/** An operation that a device sends after the restore point. */
const late = pushedCreation();

function pushedCreation() {
  const fields = { name: "From a device" };
  return [{ opId: randomUUID(), type: "prospect.create", clientRecordId: randomUUID(), fields }];
}

async function push(operations: ReturnType<typeof pushedCreation>): Promise<string | undefined> {
  const batch = { context: fresh(), caller, requestId: "push" };
  return (await applyBatch(batch, { deviceId: "tablet", operations })).results[0]?.outcome;
}

/** Updates a client's copy of the prospects' names, and returns its new cursor. If the cursor is invalid, the client begins anew. */
async function synced(cursor: string | undefined, known: Map<number, unknown>): Promise<string> {
  let next = cursor;
  for (;;) {
    try {
      const page = await readChanges(fresh(), caller, {
        limit: 500,
        types: next === undefined ? ["prospects"] : undefined,
        cursor: next,
      });
      for (const { id, op, data } of page.items) {
        if (op === "upsert") known.set(id, data?.name);
        else known.delete(id);
      }
      next = page.cursor;
      if (!page.hasMore) return next;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "sync_reset_required") throw error;
      next = undefined;
      known.clear();
    }
  }
}

process.env.WEBHOOK_URL_POLICY = "local";
await restorePoint();
const { caller, repId } = await newCompany(fresh());
const { caller: other } = await newCompany(fresh());
const registrations = ["prospect.created", "prospect.updated", "note.created"].map((event) => ({
  event,
  ...{ filter: null, delayMinutes: 0, manualTriggerButtonText: null, triggerMode: "automatic" as const },
}));
await createWebhook(fresh(), caller.companyId, { name: "x", url: "http://127.0.0.1:1/", registrations });
// At the restore point, facts are in all three stores: sums of days, the log of facts that are not yet summed up, and unflushed entries.
const flushed = () => flush(fresh(), caller.companyId, { least: 1, settleMs: 0, sumAfter: 0 });
const ids = await fill(caller);
await flushed();
await push(early);
await flushed();
await createProspect(fresh(), caller, { name: "Eve" });
await fill(other);
/** What `caller` saw at the restore point. */
const before = await seen(fresh(), caller);
const at = await restorePoint();
await restoreTable(restoreContext, { source: TABLE, target: SOURCE, at });
await disableUser(fresh(), caller, repId);

const restore = () =>
  restoreCompany({ live: storeOf(TABLE), restored: storeOf(SOURCE), clock, settleMs: 1 }, caller.companyId);

async function quietly(): Promise<void> {
  const { table } = storeOf(TABLE);
  await resume({ table, clock }, caller.companyId);
  await suspend({ table, clock }, caller.companyId);
  time.now += QUIET_MS;
}

const key = { name: "k", scopes: ["audit:read" as const] };

describe("a restored company", () => {
  test("has what it had at the point, while other companies keep what they have", async () => {
    const warm = fresh();
    await damage();
    expect(await seen(warm, caller)).not.toEqual(before);
    await createProspect(fresh(), other, { name: "Stays" });
    const others = await seen(fresh(), other);
    await quietly();
    const { faults, brought, removed } = await restore();
    expect(faults).toEqual([]);
    expect(brought).toBeGreaterThan(0);
    expect(removed).toBeGreaterThan(0);
    expect(await seen(fresh(), caller)).toEqual(before);
    expect(await seen(warm, caller), "a warm function that has cached the damaged index").toEqual(before);
    const again = await metered(() => listProspects(warm, caller, ListQuery.parse({})));
    expect(again.usage.rounds, "the names are in memory again").toBe(1);
    expect(await seen(fresh(), other)).toEqual(others);
  });

  test("keeps its API keys, and those that were revoked after the point stay revoked", async () => {
    const { table } = storeOf(TABLE);
    const { id } = await createAccount(fresh(), caller, { name: "program", role: "admin", permissions: [] });
    const [kept, revoked] = [await createKey(fresh(), caller, id, key), await createKey(fresh(), caller, id, key)];
    await revokeKey(fresh(), caller, id, revoked.id);
    await quietly();
    await restore();
    await resume({ table, clock }, caller.companyId);
    expect(await callerOfKey(fresh(), kept.key)).toMatchObject({ userId: id });
    await expect(callerOfKey(fresh(), revoked.key)).rejects.toMatchObject({ code: "unauthenticated" });
  });

  test("keeps a right that was taken away after the point", async () => {
    const user = await storeOf(TABLE).table.get(keys.user(caller.companyId, repId));
    expect(user).toMatchObject({ isActive: false });
  });

  test("gives new ids to new prospects, and lists them", async () => {
    const context = fresh();
    const highest = Math.max(...(await rows()).flatMap(({ id }) => (typeof id === "number" ? [id] : [])));
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
    const brought = (await rows()).filter((row) => row[COPIED_FROM_BACKUP_AT] !== undefined);
    expect(brought.length).toBeGreaterThan(0);
    const { table } = storeOf(TABLE);
    const context = eventContext();
    const deliveries = async () => (await rows()).filter(({ type }) => type === "delivery").length;
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

test("a restore is refused for an active company and for one that the restored table does not have", async () => {
  const context = { live: storeOf(TABLE), restored: storeOf(SOURCE), clock };
  await expect(restoreCompany(context, other.companyId)).rejects.toThrow("is active");
  const { caller: late } = await newCompany(fresh());
  await suspend({ table: storeOf(TABLE).table, clock }, late.companyId);
  time.now += QUIET_MS;
  await expect(restoreCompany(context, late.companyId)).rejects.toThrow("has no company");
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
