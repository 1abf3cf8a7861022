/**
 * Tests that a company's steady events are not delayed while 10 000 events of another company wait for a receiver that is slow or failing.
 */
import { expect, test } from "vitest";
import { RECHECK_MS, RECHECKS } from "#shared/webhooks/deliver/deliver.ts";
import { slotLimit } from "#shared/webhooks/limiter/limiter.ts";
import { reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { isolate } from "./measure-isolation.ts";

const EVENTS = 10_000;
const MINUTES_OF_MACHINE = 30;

const db = faultyDynamoDb("test");
const hang = { ms: 10_000, status: null, error: "no answer within 10000 ms" };
test.each([
  ["is dead, and was quick before", hang, true],
  ["answers after 9.9 s", { ms: 9_900, status: 200 }, false],
])(
  "a receiver that %s",
  async (_, trouble, wasQuick) => {
    const found = await isolate(db, { events: EVENTS, others: 600, trouble, wasQuick });
    // A sender whose receiver was quick waits this long for a slot. It cannot send deliveries of the other company meanwhile.
    expect(found.worstLatenessMs).toBeLessThanOrEqual(wasQuick ? RECHECKS * RECHECK_MS : 0);
    expect(found.mostConcurrent).toBeLessThanOrEqual(slotLimit(10, !wasQuick));
    const { clock } = found.simulation.context;
    const again = { again: 0, wait: () => Promise.resolve() };
    for (const { companyId } of [found.troubled, found.good]) {
      expect((await reconcile({ table: db.direct, clock }, companyId, again)).faults).toEqual([]);
    }
  },
  MINUTES_OF_MACHINE * 60_000,
);
