/** Tests the counts of a territory, and runs over its prospects while users change them and after kills. */
import fc from "fast-check";
import pointInPolygon from "point-in-polygon-hao";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { JobContext } from "#shared/context.ts";
import { readQueue } from "#shared/jobs/bulk/queue.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { runJob } from "#shared/jobs/job.ts";
import { territoryStats } from "#shared/territories/stats.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt, killPointsOf } from "../harness/kills.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { resultsOf, storedJob } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const jobs = { send: async () => undefined };
const square = rectangle(0, 0, 4, 4);
const empty = { totalProperties: 0, assignedToUserId: null };

type Point = readonly [lng: number, lat: number, assigneeId: number | null, createdMs: number];
const DAY_MS = 86_400_000;

/** Creates prospects at whole coordinates, like the corners of the tested polygons, so that some are on a boundary. */
async function newGrid(): Promise<Company & { readonly points: readonly Point[] }> {
  const company = await newCompany(harness.sound());
  const points: Point[] = [];
  for (let lng = -1; lng <= 5; lng++) {
    for (let lat = -1; lat <= 5; lat += 2) {
      const assignedToUserId = (lng + lat) % 3 === 0 ? company.repId : null;
      const assigned = assignedToUserId === null ? {} : { assignedToUserId };
      await verbs.createProspect(harness.sound(), company.caller, { lng, lat, ...assigned });
      points.push([lng, lat, assignedToUserId, now.ms]);
      now.ms += 0.7 * DAY_MS;
    }
  }
  return { ...company, points };
}

test("the counts equal those of a test of each point, also if a polygon crosses itself", {
  tags: "sized",
}, async () => {
  const { caller, repId, points } = await newGrid();
  const { companyId } = caller;
  const { id } = await verbs.createTerritory(harness.sound(), caller, { name: "T", ...empty });
  const rep: Caller = { companyId, userId: repId, role: "sales", permissions: [] };
  const corner = fc.tuple(fc.integer({ min: -1, max: 5 }), fc.integer({ min: -1, max: 5 }));
  await fc.assert(
    fc.asyncProperty(fc.array(corner, { minLength: 3, maxLength: 7 }), async (open) => {
      // `pointInPolygon` needs a ring in which no point equals the next one. Such points are removed. Polygons with fewer than three
      // remaining points are not tested.
      const ring = open.filter(
        ([x, y], i) => x !== open[(i + 1) % open.length]?.[0] || y !== open[(i + 1) % open.length]?.[1],
      );
      fc.pre(ring.length >= 3);
      await verbs.updateTerritory(harness.sound(), caller, id, { polygon: ring });
      const closed = [...ring, ...ring.slice(0, 1)].map(([x, y]) => [x, y]);
      const inside = points.filter(([lng, lat]) => pointInPolygon([lng, lat], [closed]) !== false);
      const own = inside.filter(([, , assignee]) => assignee === repId).length;
      const { total, byStatus, byAssignee, untouchedDays } = await territoryStats(harness.sound(), caller, id);
      expect(total).toBe(inside.length);
      const oldest = Math.min(...inside.map(([, , , createdMs]) => createdMs));
      expect(untouchedDays).toBe(total === 0 ? null : Math.floor((now.ms - oldest) / DAY_MS));
      expect(byStatus).toEqual(total === 0 ? [] : [{ status: null, count: total }]);
      expect(new Map(byAssignee.map(({ user, count }) => [user?.id ?? null, count]))).toEqual(
        new Map<number | null, number>(
          [[repId, own] as const, [null, total - own] as const].filter(([, count]) => count > 0),
        ),
      );
      expect((await territoryStats(harness.sound(), rep, id)).total).toBe(own);
    }),
    { numRuns: sized({ short: 15, wide: 40 }) },
  );
});

test("the untouched days are those since the last change of the prospect that was changed first, flushed or not", async () => {
  const { caller, territoryId, ids } = await newScene();
  const untouched = async () => (await territoryStats(harness.sound(), caller, territoryId)).untouchedDays;
  now.ms += 10 * DAY_MS;
  for (const id of ids.slice(1)) await verbs.updateProspect(harness.sound(), caller, id, { name: "touched" });
  now.ms += 5 * DAY_MS - 1;
  expect(await untouched()).toBe(14);
  await flush(harness.sound(), caller.companyId, { least: 1, settleMs: 0 });
  expect(await untouched()).toBe(14);
  await verbs.updateProspect(harness.sound(), caller, ids[0] ?? 0, { name: "touched" });
  expect(await untouched()).toBe(4);
  now.ms += 1;
  expect(await untouched()).toBe(5);
});

interface Scene extends Company {
  readonly territoryId: number;
  readonly ids: readonly number[];
}

async function newScene(): Promise<Scene> {
  const company = await newCompany(harness.sound());
  const { caller } = company;
  const { id: territoryId } = await verbs.createTerritory(harness.sound(), caller, {
    name: "T",
    polygon: square,
    ...empty,
  });
  const ids: number[] = [];
  for (let lng = 0; lng < 4; lng++) ids.push((await verbs.createProspect(harness.sound(), caller, { lng, lat: 1 })).id);
  return { ...company, territoryId, ids };
}

const begin = (context: JobContext, { caller, territoryId, repId, ids }: Scene) =>
  verbs.createRun(context, { objects: context.objects, jobs }, caller, territoryId, {
    mode: "assign",
    toUserId: repId,
    expectedCount: ids.length,
  });

async function begun(scene: Scene): Promise<number> {
  const answer = await begin(harness.sound(), scene);
  return "id" in answer ? answer.id : expect.fail("no job");
}

test("a prospect that was assigned or deleted since the run was created is skipped, and one that has moved is not", async () => {
  const scene = await newScene();
  const { caller, ids, territoryId } = scene;
  const id = await begun(scene);
  const [taken = 0, deleted = 0, moved = 0] = ids;
  const context = harness.sound();
  await verbs.updateProspect(context, caller, taken, { assignedToUserId: caller.userId });
  await verbs.deleteProspect(context, caller, deleted);
  await verbs.updateProspect(context, caller, moved, { lng: 9 });
  await verbs.updateTerritory(context, caller, territoryId, { polygon: ringOf("7 7, 8 7, 8 8") });
  const job = { kind: "bulk" as const, companyId: caller.companyId, id };
  await runJob(bulkJob(), context, job, () => 300_000);
  expect(await storedJob(harness, job)).toMatchObject({ state: "completed", changed: 2, skipped: 2, territoryId });
  const codes = new Map((await resultsOf(harness, job)).map((result) => [result.id, result.code ?? result.outcome]));
  expect(ids.map((one) => codes.get(one))).toEqual(["changed_since", "not_found", "changed", "changed"]);
  expect((await territoryStats(context, caller, territoryId)).byAssignee).toEqual([]);
});

test("a request for a run that is killed at any call leaves at most one job, and no second one beside it", async () => {
  const counted = await newScene();
  db.plan(() => pass);
  await begin(harness.faulty(), counted);
  const calls = db.calls.length;
  for (const call of killPointsOf(calls, 0)) {
    for (const [, death] of deaths) {
      const scene = await newScene();
      db.plan(killedAt(call, death));
      await begin(harness.faulty(), scene).catch(() => undefined);
      db.plan(() => pass);
      const again = await begin(harness.sound(), scene).then(
        () => "accepted",
        (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
      );
      const { running, waiting, paused } = await readQueue(harness.sound().table, scene.caller.companyId);
      expect(["accepted", "conflict"]).toContain(again);
      expect([running ?? [], waiting, paused].flat()).toHaveLength(1);
    }
  }
});
