/** Some eighty events with and without faults. The long tier has ten thousand (soak.long.test.ts). */
import { beforeAll, expect, test } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { soak } from "./soak.ts";

/** Some thousand calls on a busy machine. */
const LONG_MS = 600_000;

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

test("a fifth of all calls fails: no event is lost or falsified, and an event comes twice only if its post was cut off", {
  timeout: LONG_MS,
}, async () => {
  const outcome = await soak(db, { changes: 30, faults: 0.2, seed: 7 });
  expect(outcome).toMatchObject({ events: 82, lost: 0, falsified: 0, unforced: 0, faults: [] });
  expect(outcome.matched).toBe(outcome.deliveries);
  expect(outcome.failed / outcome.calls).toBeGreaterThan(0.15);
  expect(outcome.duplicates).toBeGreaterThan(0);
});

test("without faults no event comes twice", { timeout: LONG_MS }, async () => {
  const outcome = await soak(db, { changes: 30, faults: 0, seed: 7 });
  expect(outcome).toMatchObject({
    events: 82,
    failed: 0,
    lost: 0,
    falsified: 0,
    duplicates: 0,
    unforced: 0,
    faults: [],
  });
  expect(outcome).toMatchObject({ posts: outcome.deliveries, matched: outcome.deliveries });
});
