/** Gives the tests a company, a table that was restored to an earlier time, and later changes of the company that a restore must undo. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import { ApiError } from "#shared/errors.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { listTags } from "#shared/reference/values.ts";
import { activityReport } from "#shared/reports/activity.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { companyPages } from "../../../infra/cli/company/rows.ts";
import { resume, suspend } from "../../../infra/cli/company/suspension.ts";
import { restoreCompany } from "../../../infra/cli/restore/company.ts";
import { restoreTable } from "../../../infra/cli/restore/point-in-time.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import {
  createAppointment,
  createNote,
  createProspect,
  createTag,
  createWebhook,
  deleteProspect,
  deleteTag,
  disableUser,
  setTags,
  updateProspect,
} from "../../harness/verbs.ts";
import { newCompany } from "../../harness/warm-function.ts";
import { restorePoint, restoreScene } from "./restore-scene.ts";

export const SOURCE = "Restored";

/** Call this function once, at the top of a test file. */
export async function restoredCompany() {
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

  async function rowsOf(companyId: number): Promise<Item[]> {
    const rows: Item[] = [];
    for await (const page of companyPages(storeOf(TABLE), companyId)) rows.push(...page.rows);
    return rows;
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
    for (const { id: tag } of await listTags(context, caller.companyId))
      await deleteTag(context, caller.companyId, tag);
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
  const registration = {
    filter: null,
    delayMinutes: 0,
    manualTriggerButtonText: null,
    triggerMode: "automatic" as const,
  };
  const registrations = ["prospect.created", "prospect.updated", "note.created"].map((event) => ({
    ...registration,
    event,
  }));
  await createWebhook(fresh(), caller.companyId, { name: "x", url: "http://127.0.0.1:1/", registrations });
  // At the restore point, facts are in the sums of days, in the log of facts that are not summed up, and in unflushed entries.
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

  const people = { caller, other, repId };
  const work = { seen, rowsOf, damage, early, late, push, synced, restore, quietly };
  return { kills, storeOf, time, clock, fresh, ...people, ids, before, ...work };
}
