/**
 * Tests that all events arrive: 28 events while a fifth of all calls fails, and 61 events without faults. Before a release, the test sends
 * more than ten thousand events.
 */
import { expect, test } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import { soak } from "./soak.ts";

/** Time limit of a test in milliseconds. A test makes thousands of calls to the table, which can take minutes on a busy machine. */
const LONG_MS = 3_600_000;

const db = faultyDynamoDb();
const wide = { changes: 5_000, events: 11_250 };

test("with faults in a fifth of all calls no event is lost or falsified, and only a post without a recorded result is repeated", {
  tags: "sized",
  timeout: LONG_MS,
}, async () => {
  const { changes, events } = sized({ short: { changes: 9, events: 28 }, wide });
  const outcome = await soak(db, { changes, faults: 0.2, seed: 7 });
  expect(outcome).toMatchObject({ events, lost: 0, falsified: 0, unforced: 0, faults: [] });
  expect(outcome.matched).toBe(outcome.deliveries);
  expect(outcome.failed / outcome.calls).toBeGreaterThan(sized({ short: 0.15, wide: 0.19 }));
  expect(outcome.duplicates).toBeGreaterThan(0);
});

test("without faults no event arrives twice", { tags: "sized", timeout: LONG_MS }, async () => {
  const { changes, events } = sized({ short: { changes: 20, events: 61 }, wide });
  const outcome = await soak(db, { changes, faults: 0, seed: 7 });
  const none = { failed: 0, lost: 0, falsified: 0, duplicates: 0, unforced: 0, faults: [] };
  expect(outcome).toMatchObject({ events, ...none, posts: outcome.deliveries, matched: outcome.deliveries });
});
