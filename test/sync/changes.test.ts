/** Tests that clients of `GET /api/changes` hold exactly what the lists show after random writes, and which cursors are invalid. */
import { expect, test, vi } from "vitest";
import { restartOfLog } from "#shared/company-index/manifest.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import { NotSealed } from "#shared/secrets/secrets.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";
import { everyWrite, longScripts, playRandom, Run } from "./changes-law.ts";
import { Device } from "./device.ts";
import { feedOf } from "./feed.ts";
import { newStage, newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();

const later = (context: ApiContext, days: number): ApiContext => ({
  ...context,
  clock: { now: () => Date.now() + days * 86_400_000 },
});

test("clients hold what the lists show, after any writes, flushes and rebuilds", {
  tags: ["sized"],
  // With the size `wide`, the test takes longer than the time-out of other tests.
  timeout: 12 * 3_600_000,
}, async () => {
  await new Run(await newTimedStage(db)).play(everyWrite);
  await playRandom(longScripts, sized({ short: 0, wide: 1_000 }), () => newTimedStage(db));
});

test("a tag that is deleted before its creation has left the unflushed entries is removed from a device", async () => {
  const { context, owner } = await newStage(db);
  const { pull, rest } = feedOf(context, owner, { types: ["tags"] });
  const { id } = await verbs.createTag(context, owner.companyId, { value: "Corner lot" });
  expect((await pull()).items).toMatchObject([{ id, op: "upsert" }]);
  await verbs.deleteTag(context, owner.companyId, id);
  expect((await rest()).at(-1)?.op).toBe("remove");
});

test("a page that is full of changes from chunks does not lose a later change of one of its records", async () => {
  const { context, owner, reps } = await newStage(db);
  const { pull, rest } = feedOf(context, owner, { limit: 2 });
  await pull();
  const ids: number[] = [];
  for (const name of ["A", "B", "C", "D"]) ids.push((await verbs.createProspect(context, owner, { name })).id);
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  const [a = 0, , , d = 0] = ids;
  // This request loads all four prospects into the function's memory, in their first version. The next requests must not use this version.
  await feedOf(context, owner, { limit: 4 }).pull();
  await verbs.updateProspect(context, owner, a, { name: "A2" });
  await verbs.updateProspect(context, owner, d, { assignedToUserId: reps[0]?.userId });
  const last = new Map<number, number>();
  for (const { id, version } of await rest()) last.set(id, version);
  expect([last.get(a), last.get(d)].map((version = 0) => rowVersionOf(version))).toEqual([2, 2]);
});

test.each([
  ["unflushed", 0, 4],
  ["in one chunk of the log", 1, 4],
  ["in five chunks of the log", 5, 500],
])("after renames of a status (%s), a device gets each prospect that shows it once", async (_, flushes, limit) => {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const { rest } = feedOf(context, owner, { limit });
  const { id } = await verbs.createStatus(context, companyId, { value: "S" });
  const shown: string[] = [];
  for (let i = 0; i < 10; i++) {
    const made = await verbs.createProspect(context, owner, { name: "Ann", currentStatusId: id });
    shown.push(`prospects ${made.id}`);
  }
  const { id: other } = await verbs.createProspect(context, owner, { name: "Bob" });
  await flush(context, companyId, { least: 1, settleMs: 0 });
  await rest();
  for (let rename = 1; rename <= 5; rename++) {
    await verbs.updateStatus(context, companyId, id, { value: `S${rename}` });
    await verbs.updateProspect(context, owner, other, { name: `Bob ${rename}` });
    if (flushes > 1) await flush(context, companyId, { least: 1, settleMs: 0 });
  }
  if (flushes === 1) await flush(context, companyId, { least: 1, settleMs: 0 });
  const items = (await rest()).map((item) => `${item.type} ${item.id}`);
  const ofRename = items.filter((item) => item !== `prospects ${other}`);
  expect(ofRename.toSorted()).toEqual([`statuses ${id}`, ...shown].toSorted());
  expect(await rest()).toEqual([]);
});

test("a name that changes before each page does not keep a device from the records that show it", async () => {
  const { context, owner } = await newStage(db);
  const { id } = await verbs.createStatus(context, owner.companyId, { value: "S" });
  const shown: number[] = [];
  for (let i = 0; i < 10; i++) {
    shown.push((await verbs.createProspect(context, owner, { name: "Ann", currentStatusId: id })).id);
  }
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  const { pull, rest } = feedOf(context, owner, { limit: 4 });
  await rest();
  const found = new Set<number>();
  for (let rename = 0; rename < 5; rename++) {
    await verbs.updateStatus(context, owner.companyId, id, { value: `S${rename}` });
    for (const item of (await pull()).items) if (item.type === "prospects") found.add(item.id);
  }
  expect([...found].toSorted()).toEqual(shown.toSorted());
});

test.each([1, 2, 3])("a snapshot with pages of %i ends, also if the notes of a prospect fill pages", async (limit) => {
  const { context, owner } = await newStage(db);
  const expected: number[] = [];
  for (const count of [3, 0, 2, 1]) {
    const { id } = await verbs.createProspect(context, owner, { name: "Ann" });
    for (let i = 0; i < count; i++)
      expected.push((await verbs.createNote(context, owner, id, { body: `note ${i}` })).id);
  }
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  const items = await feedOf(context, owner, { limit, types: ["notes"] }).rest();
  expect(items.map(({ id }) => id)).toEqual(expected);
});

test.each([
  ["60 days", "expired", (context: ApiContext) => later(context, 61)],
  [
    "the restore of the company from a backup",
    "log_restarted",
    async (context: ApiContext, companyId: number) => {
      await context.table.transact([restartOfLog(companyId)]);
      return context;
    },
  ],
] as const)("a client that is in the middle of a snapshot must begin anew after %s", async (_, reason, change) => {
  const { context, owner } = await newStage(db);
  for (const name of ["A", "B", "C"]) await verbs.createProspect(context, owner, { name });
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  const query = { limit: 1, types: undefined };
  const first = await readChanges(context, owner, { ...query, types: ["prospects"], cursor: undefined });
  const { cursor, phase } = await readChanges(context, owner, { ...query, cursor: first.cursor });
  expect(phase).toBe("snapshot");
  expect(await readChanges(later(context, 59), owner, { ...query, cursor })).toMatchObject({ items: [{}] });
  const after = await change(context, owner.companyId);
  const refusal = { code: "sync_reset_required", members: { reason } };
  await expect(readChanges(after, owner, { ...query, cursor })).rejects.toMatchObject(refusal);
});

test("a user with other rights, and a cursor after 60 days, must begin anew", async () => {
  const { context, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  const query = { limit: 10, types: undefined, cursor: undefined };
  const { cursor } = await readChanges(context, rep, { ...query, types: ["prospects"] });
  const location = "/api/changes?types=prospects";
  await expect(
    readChanges(context, { ...rep, permissions: ["canViewAllProspects"] }, { ...query, cursor }),
  ).rejects.toMatchObject({ code: "sync_reset_required", members: { reason: "scope_changed" }, location });
  const changes = await readChanges(context, rep, { ...query, cursor });
  const next = { ...query, cursor: changes.cursor };
  expect(await readChanges(later(context, 59), rep, next)).toMatchObject({ items: [], hasMore: false });
  const expired = { members: { reason: "expired" }, location };
  await expect(readChanges(later(context, 61), rep, next)).rejects.toMatchObject(expired);
});

test("a client whose next changes are missing from the change log must begin anew", async () => {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const { pull, rest } = feedOf(context, owner, { limit: 10, types: ["prospects"] });
  await rest();
  for (const name of ["A", "B"]) {
    await verbs.createProspect(context, owner, { name });
    await flush(context, companyId, { least: 1, settleMs: 0 });
  }
  const rows = await Array.fromAsync(context.table.query(keys.chunks(companyId, 0, 1_000)));
  const chunks = rows.map(({ pk, sk }) => ({ pk: String(pk), sk: String(sk) }));
  expect(chunks.length).toBeGreaterThan(1);
  await context.table.batchRemove(chunks);
  await expect(pull()).rejects.toMatchObject({ code: "sync_reset_required", members: { reason: "log_restarted" } });
});

test.each([
  { loss: "assigned to another rep", withNotes: true },
  { loss: "assigned to another rep", withNotes: false },
  { loss: "deleted", withNotes: true },
])("a prospect that was $loss is not shown any more (with notes: $withNotes)", async ({ loss, withNotes }) => {
  const { context, owner, reps, time } = await newTimedStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const settle = async () => {
    time.nowMs += 1_000;
    await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  };
  const first = feedOf(context, rep);
  await first.rest();
  const device = () => feedOf(context, rep, { limit: 1, cursor: first.cursor() });

  const { id } = await verbs.createProspect(context, owner, { name: "Maria" });
  if (withNotes) await verbs.createNote(context, owner, id, { body: "first" });
  await verbs.updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  for (let i = 0; i < 5; i++) await verbs.createProspect(context, owner, { assignedToUserId: rep.userId });
  await settle();
  // Another device of the rep reads the prospect, so the function now has the prospect's row in memory.
  await device().rest();
  if (loss === "deleted") await verbs.deleteProspect(context, owner, id);
  else await verbs.updateProspect(context, owner, id, { assignedToUserId: other.userId });
  // The rep has lost the prospect two minutes before the note is written, so no device of the rep may get the note.
  time.nowMs += 120_000;
  if (loss !== "deleted") await verbs.createNote(context, other, id, { body: "secret" });
  await settle();

  const shown = (await device().rest()).filter(({ op }) => op === "upsert");
  const ofProspect = shown.filter((item) => item.id === id || Object(item.data).prospectId === id);
  expect(ofProspect).toEqual([]);
});

test("if a prospect is deleted during a request, a device gets no two items with the same version of its appointment", async () => {
  for (let call = 1, isReached = true; isReached; call++) {
    const { context: direct, owner, time } = await newTimedStage(db);
    const context = { ...direct, table: db.table };
    const device = new Device(owner.userId, ["prospects", "appointments"], [500]);
    const pull = async (by: Pick<typeof direct, "table" | "clock" | "secrets">): Promise<void> => {
      const { cursor, limit, types } = device;
      device.apply(
        await readChanges(by, owner, { cursor, limit, types: cursor === undefined ? [...types] : undefined }),
      );
    };
    await pull(direct);
    time.nowMs += 1_000;
    const { id } = await verbs.createProspect(direct, owner, { name: "Maria" });
    await verbs.createAppointment(direct, owner, id, { title: "visit", startAt: "2030-01-01T10:00:00.000Z" });
    isReached = false;
    db.plan((_operation, number) => {
      if (number !== call) return pass;
      isReached = true;
      return { kind: "early", meanwhile: () => verbs.deleteProspect(direct, owner, id) };
    });
    await pull(context);
    db.plan(() => pass);
    // `Device.apply`, which `pull` calls, fails the test if a device gets two different items with the same version.
    await pull(direct);
    if (isReached) expect([...device.copies().values()].filter((one) => one.prospectId === id)).toEqual([]);
  }
});

test("cursors have a data key of their own: that of webhook secrets decrypts no cursor, and makes none", async () => {
  const context = warmFunction(db, { now: () => Date.now() });
  const owner = await newOwner(context);
  const pull = (cursor?: string) => feedOf(context, owner, { cursor }).pull();
  const { cursor } = await pull();
  expect((await pull(cursor)).items).toEqual([]);
  const place = { pk: `C#${owner.companyId}#CURSOR`, sk: `U#${owner.userId}` };
  const bytes = Buffer.from(cursor, "base64url");
  await expect(context.secrets.open(owner.companyId, place, bytes)).rejects.toThrow(NotSealed);
  const text = await context.secrets.open(owner.companyId, place, bytes, "sync-cursors");
  const other = await context.secrets.seal(owner.companyId, place, text);
  for (const wrong of [other, bytes.subarray(1), Buffer.alloc(0)]) {
    const sent = Buffer.from(wrong).toString("base64url");
    await expect(pull(sent)).rejects.toMatchObject({ code: "validation_failed" });
  }
});

test("a cursor from before the restore of the whole table must begin anew", async () => {
  const { context, owner } = await newStage(db);
  await verbs.createProspect(context, owner, { name: "Ann" });
  const pull = (cursor?: string) => feedOf(context, owner, { cursor }).pull();
  vi.stubEnv("TABLE_NAME", "Canvassing");
  const { cursor } = await pull();
  expect((await pull(cursor)).phase).toBe("changes");
  vi.stubEnv("TABLE_NAME", "Canvassing-restored");
  await expect(pull(cursor)).rejects.toMatchObject({ code: "sync_reset_required" });
  vi.unstubAllEnvs();
});
