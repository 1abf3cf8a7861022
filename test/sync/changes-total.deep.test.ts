/** Tests the `total` of a snapshot of `GET /api/changes`: what it costs, and that it is exact, also while other users write. */
import { expect, test } from "vitest";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import {
  createAppointment,
  createNote,
  createProspect,
  createStatus,
  createTag,
  createTerritory,
  createUser,
  deleteAppointment,
  deleteNote,
  deleteProspect,
  deleteTag,
  deleteTerritory,
  updateProspect,
} from "../harness/verbs.ts";
import { addRep } from "../harness/warm-function.ts";
import type { Stage } from "./changes-law.ts";
import { feedOf } from "./feed.ts";
import { newStage, tickingClock } from "./stage.ts";

const db = faultyDynamoDb();
const all = { least: 1, settleMs: 0 };
const visit = { title: "Visit", startAt: "2030-01-01T09:00:00.000Z" };
const first = { types: undefined, cursor: undefined };

/** Adds users with one prospect and some appointments each. */
async function addTeam({ context, owner }: Stage, users: number, appointments: number): Promise<void> {
  const { companyId } = owner;
  for (let i = 0; i < users; i++) {
    const email = `member-${i}-of-${companyId}@x.test`;
    const assignedToUserId = await addRep(context, companyId, { email, firstName: "A", lastName: "B" });
    const prospect = await createProspect(context, owner, { name: "Ann", assignedToUserId });
    for (let n = 0; n < appointments; n++) await createAppointment(context, owner, prospect.id, visit);
  }
  await flush(context, companyId, all);
}

/** Reads all records of the company. Returns their number (`held`) and all totals that the pages state. */
async function snapshotOf({ context, owner }: Stage) {
  const pages = await feedOf(context, owner).pagesUntil(({ phase }) => phase === "changes");
  const held = new Set(pages.flatMap(({ items }) => items.flatMap(({ id, op }) => (op === "upsert" ? id : []))));
  return { held: held.size, totals: [...new Set(pages.slice(0, -1).map(({ total }) => total))] };
}

test("the first page of a small limit costs by the limit, and not by the users and appointments of the company", async () => {
  const costs: number[] = [];
  for (const [users, appointments] of [
    [2, 1],
    [20, 2],
  ] as const) {
    const stage = await newStage(db);
    await addTeam(stage, users, appointments);
    const page = () => readChanges(stage.context, stage.owner, { ...first, limit: 1 });
    await page();
    const { result, usage } = await metered(page);
    expect(result.total).toBe((await snapshotOf(stage)).held);
    costs.push(usage.readUnits);
  }
  const [small = 0, large] = costs;
  expect(large).toBe(small);
  expect(small).toBeLessThanOrEqual(3);
});

test("appointments of a deleted prospect do not count, although the prospect was reassigned before", async () => {
  const stage = await newStage(db);
  const { context, owner, reps } = stage;
  const kept = await createProspect(context, owner, { name: "Ann" });
  await createAppointment(context, owner, kept.id, visit);
  const { id } = await createProspect(context, owner, { name: "Bob" });
  await createAppointment(context, owner, id, visit);
  await updateProspect(context, owner, id, { assignedToUserId: reps[0]?.userId });
  await deleteProspect(context, owner, id);
  for (let i = 0; i < 2; i++) {
    const { held, totals } = await snapshotOf(stage);
    expect(totals).toEqual([held]);
  }
});

interface Pair {
  readonly add: () => Promise<{ readonly id: number }>;
  readonly remove?: (id: number) => Promise<unknown>;
}

/** Number of the statuses, tags and users that `pairsOf` has added. Their values must differ. */
let named = 0;

/** Returns for each type how another user adds and removes a record. The number of records of the other types does not change. */
function pairsOf({ context, owner, reps }: Stage, prospectId: number): Record<ChangeType, Pair> {
  const { companyId } = owner;
  const assignedToUserId = reps[0]?.userId;
  return {
    prospects: {
      add: () => createProspect(context, owner, { name: "Eve", assignedToUserId }),
      remove: (id) => deleteProspect(context, owner, id),
    },
    notes: {
      add: () => createNote(context, owner, prospectId, { body: "Call again" }),
      remove: (id) => deleteNote(context, owner, id),
    },
    appointments: {
      add: () => createAppointment(context, owner, prospectId, visit),
      remove: (id) => deleteAppointment(context, owner, id),
    },
    territories: {
      add: () => createTerritory(context, owner, { name: "North", totalProperties: 0, assignedToUserId: null }),
      remove: (id) => deleteTerritory(context, owner, id),
    },
    statuses: { add: () => createStatus(context, companyId, { value: `Later ${named++}` }) },
    tags: {
      add: () => createTag(context, companyId, { value: `Corner lot ${named++}` }),
      remove: (id) => deleteTag(context, companyId, id),
    },
    users: {
      add: () => {
        const email = `late-${named++}-of-${companyId}@x.test`;
        const rights = { role: "sales" as const, permissions: [] };
        return createUser(context, memoryIdentities(), owner, { email, firstName: "A", lastName: "B", ...rights });
      },
    },
  };
}

test.each(ChangeType.options)(
  "while another user adds and removes records between any two reads, the total of %s was exact at one moment of the request",
  async (type) => {
    const stage = await newStage(db);
    const { context, owner, reps } = stage;
    const { id } = await createProspect(context, owner, { name: "Ann", assignedToUserId: reps[0]?.userId });
    const { add, remove } = pairsOf(stage, id)[type];
    const made = [(await add()).id, (await add()).id];
    await flush(context, owner.companyId, all);
    for (const caller of [owner, ...reps.slice(0, 1)]) {
      const seen = async () =>
        (await readChanges(context, caller, { limit: 500, types: [type], cursor: undefined })).items.length;
      for (const [turn, kind] of (["early", "late"] as const).entries()) {
        let count = await seen();
        const possible = new Set([count]);
        let left = turn;
        const meanwhile = async () => {
          const oldest = remove === undefined || left++ % 2 === 0 ? undefined : made.shift();
          if (oldest === undefined) made.push((await add()).id);
          else await remove?.(oldest);
          count += oldest === undefined ? 1 : -1;
          possible.add(count);
        };
        const busy = contextOn(db.table, tickingClock());
        db.plan(() => ({ kind, meanwhile }));
        const { total } = await readChanges(busy, caller, { limit: 1, types: [type], cursor: undefined });
        db.plan(() => pass);
        expect([...possible], kind).toContain(total);
      }
    }
  },
);
