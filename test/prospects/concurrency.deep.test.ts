/**
 * Tests concurrent writes. Status histories must be complete and ids must be unique. While a status is being deactivated, a change that
 * sets it must either take full effect or be refused.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import type { ProspectDetail } from "#shared/prospects/detail.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { getStatus, listStatuses } from "#shared/reference/statuses.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import { createProspect, createStatus, deactivateStatus, updateProspect } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

async function company(): Promise<{ context: ApiContext; caller: Caller }> {
  const context = contextOn(db.direct);
  return { context, caller: await newOwner(context) };
}

/**
 * Expects a status history without gaps: each entry begins with the status at which the previous entry ends, and the newest entry ends
 * with the prospect's current status.
 */
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

const PATCHES = 30;
const PROSPECTS = sized({ short: 2, wide: 20 });

test(`the history has one entry for each of ${PATCHES} concurrent changes`, { tags: "sized" }, async () => {
  const { context, caller } = await company();
  const ids = await Promise.all(
    Array.from({ length: PATCHES }, async (_, i) => {
      const { id } = await createStatus(context, caller.companyId, { value: `${i}` });
      return id;
    }),
  );
  const prospects = await Promise.all(Array.from({ length: PROSPECTS }, () => createProspect(context, caller, {})));
  for (const [n, { id }] of prospects.entries()) {
    await Promise.all(
      ids.map((statusId, i) => {
        // For every second prospect, each change sets another status. For the other prospects, the changes set two statuses and no status
        // in turn.
        const currentStatusId = n % 2 === 0 ? statusId : ([ids[0], ids[1], null][i % 3] ?? null);
        return updateProspect(context, caller, id, { currentStatusId, ...(i % 5 === 0 && { sourceId: `${i}` }) });
      }),
    );
    const given = expectChain(await readProspect(context, caller, id));
    if (n % 2 === 0) expect(given.toSorted()).toEqual(ids.toSorted());
    else expect(new Set(given)).toEqual(new Set([ids[0], ids[1], undefined]));
  }
});

test("four processes that each create fifty prospects at the same time never use an id twice", async () => {
  const { context, caller } = await company();
  const script = join(import.meta.dirname, "creating-process.ts");
  const run = promisify(execFile);
  const given = [db.directEndpoint, caller.companyId, caller.userId, 50].map(String);
  const outputs = await Promise.all(Array.from({ length: 4 }, () => run(process.execPath, [script, ...given])));
  const ids = outputs.flatMap(({ stdout }) => z.parse(z.array(z.int()), JSON.parse(stdout)));
  expect(ids).toHaveLength(200);
  expect(new Set(ids).size).toBe(200);
  const { total, items } = await listProspects(context, caller, { page: 1, pageSize: 500 });
  expect(total).toBe(200);
  expect(new Set(items.map(({ id }) => id))).toEqual(new Set(ids));
});

test("if a status is deactivated while a prospect gets it, the prospect has the whole status or its change is refused", {
  tags: "sized",
}, async () => {
  const { context, caller } = await company();
  const outcomes = new Set<string>();
  for (let round = 0; round < sized({ short: 12, wide: 60 }); round++) {
    const [{ id: statusId }, { id }] = await Promise.all([
      createStatus(context, caller.companyId, { value: `s${round}` }),
      createProspect(context, caller, {}),
    ]);
    const give = async () => {
      if (round % 3 === 0) await yielded(round % 7);
      return updateProspect(context, caller, id, { currentStatusId: statusId });
    };
    const retire = async () => {
      if (round % 3 === 1) await yielded(round % 7);
      return deactivateStatus(context, caller.companyId, statusId);
    };
    const [given, retired] = await Promise.allSettled([give(), retire()]);
    expect(retired.status).toBe("fulfilled");
    expect((await getStatus(context, caller.companyId, statusId)).isActive).toBe(false);
    const detail = await readProspect(context, caller, id);
    expectChain(detail);
    if (given.status === "fulfilled") {
      expect(detail.currentStatus).toMatchObject({ id: statusId, value: `s${round}` });
      expect(detail.statusHistory[0]?.status).toEqual(detail.currentStatus);
    } else {
      expect(given.reason).toMatchObject({ code: "validation_failed" });
      expect(detail).toMatchObject({ currentStatus: null, statusHistory: [] });
    }
    outcomes.add(given.status);
    const late = createProspect(context, caller, { currentStatusId: statusId });
    await expect(late).rejects.toMatchObject({ code: "validation_failed" });
  }
  expect([...outcomes].toSorted()).toEqual(["fulfilled", "rejected"]);
  expect((await listStatuses(context, caller.companyId)).filter(({ isActive }) => isActive)).toHaveLength(8);
});

/**
 * Waits about as long as `reads` reads take. The test varies this number, so that sometimes one of its two writes comes first and sometimes
 * the other.
 */
async function yielded(reads: number): Promise<void> {
  for (let i = 0; i < reads; i++) await db.direct.get({ pk: "nothing", sk: "nothing" });
}
