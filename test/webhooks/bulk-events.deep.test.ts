/** Tests that no webhook event of a bulk job is lost or made twice if the publisher or the sender is killed at any of its calls. */
import { describe, expect, test } from "vitest";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { Killed, killable } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { bulkChange, deliveries, newPipeline, type Pipeline } from "./delivery-pipeline.ts";
import { expandAll } from "./fan-out-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
const CHANGES = 7;

/** Publishes the changes again after each kill, as Lambda does with a batch of the stream. */
async function publish(at: Pipeline): Promise<void> {
  const changes = Array.from({ length: CHANGES }, (_, i) => bulkChange(at.companyId, i + 1));
  for (;;) {
    try {
      const context = killable(at.context);
      return await publishChanges(context, batchReads(context), changes);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
  }
}

async function callsOf(delayMinutes: number): Promise<number> {
  const at = await newPipeline(db, "prospect.updated", delayMinutes);
  await publish(at);
  await expandAll(at);
  return at.calls.length;
}

describe.each([
  ["without a delay", 0],
  ["with a debounce window", 10],
])("a kill at each call %s", (_, delayMinutes) => {
  test.each(["before", "after"] as const)(
    "%s it takes effect leaves one delivery for each change, with a message for each",
    { tags: "sized" },
    async (when) => {
      for (const number of killPointsOf(await callsOf(delayMinutes), when === "before" ? 0 : 1)) {
        const label = `${when} call ${number}`;
        const at = await newPipeline(db, "prospect.updated", delayMinutes);
        at.kill = { at: number, when };
        await publish(at);
        const queued = await expandAll(at);
        const made = await deliveries(at);
        expect(made, label).toHaveLength(CHANGES);
        expect(new Set(queued), label).toEqual(new Set(made.map(({ id }) => id)));
        const whole = { matched: CHANGES, waiting: CHANGES, expanding: 0 };
        expect(await expectReconciled(at, label)).toMatchObject(whole);
      }
    },
  );
});
