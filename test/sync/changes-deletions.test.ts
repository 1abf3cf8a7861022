/** Tests which users get the deletion of a note or appointment in `GET /api/changes`. */
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { chunkWrites, type NoteChange } from "#shared/company-index/change-log.ts";
import { readHead } from "#shared/company-index/manifest.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import * as limits from "#shared/limits.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import * as verbs from "../harness/verbs.ts";
import { feedOf } from "./feed.ts";
import { newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();
const DAY_MS = 86_400_000;

/** Creates a company with a prospect of the first rep. Each user has a device, and each device has already read all changes. */
async function newScene() {
  const { context, owner, reps, time } = await newTimedStage(db);
  const [first = expect.fail(), second = expect.fail(), third = expect.fail()] = reps;
  const admin: Caller = { ...owner, role: "admin" };
  const { id } = await verbs.createProspect(context, owner, { name: "Ann", assignedToUserId: first.userId });
  const callers = [owner, admin, first, second, third];
  const types = ["notes", "appointments"] as const;
  const feeds = new Map(callers.map((caller) => [caller, feedOf(context, caller, { types })]));
  /** Reads to the end, and returns the notes and appointments that the user's device must remove. */
  const removed = async (caller: Caller): Promise<number[]> => {
    const items = (await feeds.get(caller)?.rest()) ?? expect.fail();
    return items.filter(({ op }) => op === "remove").map((item) => item.id);
  };
  const readAll = async () => Promise.all(callers.map(removed));
  const assign = (rep: Caller) => verbs.updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  const flushAll = () => flush(context, owner.companyId, { least: 1, settleMs: 0 });
  await readAll();
  return { context, owner, first, second, third, id, time, readAll, removed, assign, flushAll };
}

const later = new Date(Date.UTC(2026, 6, 1)).toISOString();

describe.each([
  [
    "note",
    async ({ context, first, id }: Awaited<ReturnType<typeof newScene>>) => {
      const made = await verbs.createNote(context, first, id, { body: "call again" });
      return { id: made.id, drop: (caller: Caller) => verbs.deleteNote(context, caller, made.id) };
    },
  ],
  [
    "appointment",
    async ({ context, first, id }: Awaited<ReturnType<typeof newScene>>) => {
      const made = await verbs.createAppointment(context, first, id, { title: "visit", startAt: later });
      return { id: made.id, drop: (caller: Caller) => verbs.deleteAppointment(context, caller, made.id) };
    },
  ],
])("the deletion of an unseen %s", (_, create) => {
  test.each([true, false])("reaches only those who see or saw the prospect (flushed: %s)", async (isFlushed) => {
    const scene = await newScene();
    const { owner, second, readAll, assign, flushAll } = scene;
    const record = await create(scene);
    await readAll();
    await assign(second);
    await record.drop(owner);
    if (isFlushed) await flushAll();
    expect(await readAll()).toEqual([[record.id], [record.id], [record.id], [record.id], []]);
  });

  test("does not reach a rep who lost the prospect before the record was made", async () => {
    const scene = await newScene();
    const { first, second, third, owner, readAll, assign, time } = scene;
    await assign(third);
    await readAll();
    await assign(first);
    time.nowMs += DAY_MS;
    const record = await create(scene);
    await assign(second);
    await record.drop(owner);
    expect(await readAll()).toEqual([[record.id], [record.id], [record.id], [record.id], []]);
  });

  test("reaches a rep who had the prospect 59 days ago and was offline since", async () => {
    const scene = await newScene();
    const { owner, first, second, third, removed, readAll, assign, time } = scene;
    await assign(third);
    await assign(first);
    const record = await create(scene);
    await assign(third);
    await readAll();
    await assign(second);
    time.nowMs += 59 * DAY_MS;
    await record.drop(owner);
    expect(await removed(third)).toEqual([record.id]);
  });

  test("reaches everybody if the prospect had so many assignees that its row cannot name them", async () => {
    const scene = await newScene();
    const { owner, first, second, third, readAll, removed, assign } = scene;
    const record = await create(scene);
    await readAll();
    for (let i = 0; i <= limits.pastAssignments; i++) await assign(i % 2 === 0 ? second : first);
    await record.drop(owner);
    expect(await removed(third)).toEqual([record.id]);
  });
});

test("a rep who has lost a prospect does not learn the ids of notes and appointments that were made afterwards", async () => {
  const { context, owner, second, first, id, readAll, removed, assign, time } = await newScene();
  const { id: seen } = await verbs.createNote(context, first, id, { body: "call again" });
  const { id: visit } = await verbs.createAppointment(context, first, id, { title: "visit", startAt: later });
  await verbs.createProspect(context, owner, { name: "Bob", assignedToUserId: first.userId });
  await readAll();
  await assign(second);
  time.nowMs += DAY_MS;
  for (let i = 0; i < 70; i++) await verbs.createNote(context, second, id, { body: "mine" });
  await verbs.createAppointment(context, second, id, { title: "visit", startAt: later });
  const last = await verbs.createNote(context, owner, id, { body: "now the rep has it again" });
  expect(await removed(first)).toEqual([seen, visit]);
  await assign(first);
  time.nowMs += DAY_MS;
  await assign(second);
  expect((await removed(first)).includes(last.id)).toBe(true);
});

test("a chunk with many deletions and many holders is divided into rows that the table can store", () => {
  const holders = Array.from({ length: limits.pastAssignments }, (_, i) => 4_503_599_627_370_496 - 7_919 * i * i);
  const changes = Array.from({ length: 4_000 }, (_, i): NoteChange => {
    const own = holders.map((user) => user - ((i * 104_729) % 1_000_003) * 1_009);
    const deletion = { kind: "note", prospectId: 5, version: 2, isDeleted: true, holders: own } as const;
    return { ...deletion, id: 9_000_000 + i, createdAt: 1e12 + i };
  });
  const writes = chunkWrites(1, readHead(undefined), { changes }, 1e12);
  const sizes = writes.map((write) =>
    "put" in write && write.put.bytes instanceof Uint8Array ? write.put.bytes.length : 0,
  );
  expect(sizes.length).toBeGreaterThan(1);
  expect(Math.max(...sizes)).toBeLessThan(400_000);
});
