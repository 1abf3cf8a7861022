/** Laws under concurrency: exact histories, ids that never repeat, and statuses that retire while they are given. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { createCompany } from "#shared/companies/create.ts";
import { readProspect } from "#shared/prospects/detail.ts";
import { listProspects } from "#shared/prospects/list.ts";
import type { ProspectDetail } from "#shared/prospects/schema.ts";
import { createProspect, updateProspect } from "#shared/prospects/write.ts";
import { createStatus, deactivateStatus, getStatus, listStatuses } from "#shared/statuses/statuses.ts";
import { type World, worldOn } from "#shared/world.ts";
import { sized } from "../tier.ts";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

let companies = 0;
async function company(): Promise<{ world: World; caller: Caller }> {
  const world = worldOn(db.direct);
  const sub = `concurrent-${companies++}`;
  const owner = { email: `${sub}@x.test`, firstName: "A", lastName: "B", sub };
  const made = await createCompany(world, { name: "X", owner });
  return { world, caller: { companyId: made.company.id, userId: made.owner.id, role: "owner", permissions: [] } };
}

/** Each entry begins where the one before it ended, and the last one ends where the prospect is. Oldest first. */
function expectChain({ statusHistory, currentStatus }: ProspectDetail): (number | undefined)[] {
  const steps = statusHistory.toReversed();
  let at: number | undefined;
  for (const { previousStatus, status } of steps) {
    expect(previousStatus?.id).toBe(at);
    expect(status?.id).not.toBe(at);
    at = status?.id;
  }
  expect(currentStatus?.id).toBe(at);
  return steps.map(({ status }) => status?.id);
}

const PATCHES = 50;
const PROSPECTS = sized({ short: 2, wide: 20 });

test(`the history has one entry per change when ${PATCHES} come to a prospect at once`, { tags: "sized" }, async () => {
  const { world, caller } = await company();
  const ids = await Promise.all(
    Array.from({ length: PATCHES }, async (_, i) => {
      const { id } = await createStatus(world, caller.companyId, { value: `${i}` });
      return id;
    }),
  );
  const prospects = await Promise.all(Array.from({ length: PROSPECTS }, () => createProspect(world, caller, {})));
  for (const [n, { id }] of prospects.entries()) {
    await Promise.all(
      ids.map((statusId, i) => {
        // Every other one is given each status once, the rest two statuses and none, over and over.
        const currentStatusId = n % 2 === 0 ? statusId : ([ids[0], ids[1], null][i % 3] ?? null);
        return updateProspect(world, caller, id, { currentStatusId, ...(i % 5 === 0 && { sourceId: `${i}` }) });
      }),
    );
    const given = expectChain(await readProspect(world, caller, id));
    if (n % 2 === 0) expect(given.toSorted()).toEqual(ids.toSorted());
    else expect(new Set(given)).toEqual(new Set([ids[0], ids[1], undefined]));
  }
});

test("four processes that each make fifty prospects at once never give the same id", async () => {
  const { world, caller } = await company();
  const script = join(import.meta.dirname, "creating-process.ts");
  const run = promisify(execFile);
  const given = [db.directEndpoint, caller.companyId, caller.userId, 50].map(String);
  const outputs = await Promise.all(Array.from({ length: 4 }, () => run(process.execPath, [script, ...given])));
  const ids = outputs.flatMap(({ stdout }) => z.parse(z.array(z.int()), JSON.parse(stdout)));
  expect(ids).toHaveLength(200);
  expect(new Set(ids).size).toBe(200);
  const { total, items } = await listProspects(world, caller, { page: 1, pageSize: 500 });
  expect(total).toBe(200);
  expect(new Set(items.map(({ id }) => id))).toEqual(new Set(ids));
});

test("a status that retires while it is given: either is first, and what it was given to shows it whole", {
  tags: "sized",
}, async () => {
  const { world, caller } = await company();
  const outcomes = new Set<string>();
  for (let round = 0; round < sized({ short: 24, wide: 60 }); round++) {
    const [{ id: statusId }, { id }] = await Promise.all([
      createStatus(world, caller.companyId, { value: `s${round}` }),
      createProspect(world, caller, {}),
    ]);
    const give = async () => {
      if (round % 3 === 0) await yielded(round % 7);
      return updateProspect(world, caller, id, { currentStatusId: statusId });
    };
    const retire = async () => {
      if (round % 3 === 1) await yielded(round % 7);
      return deactivateStatus(world, caller.companyId, statusId);
    };
    const [given, retired] = await Promise.allSettled([give(), retire()]);
    expect(retired.status).toBe("fulfilled");
    expect((await getStatus(world, caller.companyId, statusId)).isActive).toBe(false);
    const detail = await readProspect(world, caller, id);
    expectChain(detail);
    if (given.status === "fulfilled") {
      expect(detail.currentStatus).toMatchObject({ id: statusId, value: `s${round}` });
      expect(detail.statusHistory[0]?.status).toEqual(detail.currentStatus);
    } else {
      expect(given.reason).toMatchObject({ code: "validation_failed" });
      expect(detail).toMatchObject({ currentStatus: null, statusHistory: [] });
    }
    outcomes.add(given.status);
    // Once it has retired, nobody is given it any more.
    const late = createProspect(world, caller, { currentStatusId: statusId });
    await expect(late).rejects.toMatchObject({ code: "validation_failed" });
  }
  expect([...outcomes].toSorted()).toEqual(["fulfilled", "rejected"]);
  expect((await listStatuses(world, caller.companyId)).filter(({ isActive }) => isActive)).toHaveLength(8);
});

/** Some reads' worth of time, so that either may come first. */
async function yielded(reads: number): Promise<void> {
  for (let i = 0; i < reads; i++) await db.direct.get({ pk: "nothing", sk: "nothing" });
}
