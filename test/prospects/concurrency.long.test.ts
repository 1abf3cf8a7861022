/** Tests concurrent changes of prospects. Their status histories must be complete. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import type { ProspectDetail } from "#shared/prospects/detail.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect, createStatus, updateProspect } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

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

test("the history has one entry for each of 50 concurrent changes of each of 20 prospects", async () => {
  const context = contextOn(db.direct);
  const caller = await newOwner(context);
  const ids = await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const { id } = await createStatus(context, caller.companyId, { value: `${i}` });
      return id;
    }),
  );
  const prospects = await Promise.all(Array.from({ length: 20 }, () => createProspect(context, caller, {})));
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
