/**
 * Tests that all events arrive: 28 events while a fifth of all calls fails, and 61 events without faults. soak.long.test.ts tests ten
 * thousand events.
 */
import { beforeAll, expect, test } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { soak } from "./soak.ts";

/** Time limit of a test in milliseconds. A test makes thousands of calls to the table, which can take minutes on a busy machine. */
const LONG_MS = 600_000;

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

test("with faults in a fifth of all calls no event is lost or falsified, and only a post without a recorded result is repeated", {
  timeout: LONG_MS,
}, async () => {
  const outcome = await soak(db, { changes: 9, faults: 0.2, seed: 7 });
  expect(outcome).toMatchObject({ events: 28, lost: 0, falsified: 0, unforced: 0, faults: [] });
  expect(outcome.matched).toBe(outcome.deliveries);
  expect(outcome.failed / outcome.calls).toBeGreaterThan(0.15);
  expect(outcome.duplicates).toBeGreaterThan(0);
});

test("without faults no event arrives twice", { timeout: LONG_MS }, async () => {
  const outcome = await soak(db, { changes: 20, faults: 0, seed: 7 });
  expect(outcome).toMatchObject({
    events: 61,
    failed: 0,
    lost: 0,
    falsified: 0,
    duplicates: 0,
    unforced: 0,
    faults: [],
  });
  expect(outcome).toMatchObject({ posts: outcome.deliveries, matched: outcome.deliveries });
});
