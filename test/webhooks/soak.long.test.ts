/** Tests that more than ten thousand events arrive although a fifth of all calls fail, either before or after they take effect. */
import { beforeAll, expect, test } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { soak } from "./soak.ts";

const AN_HOUR = 3_600_000;

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

test("no event is lost or falsified, and an event arrives twice only if a fault came before the result of its post was recorded", {
  timeout: AN_HOUR,
}, async () => {
  const outcome = await soak(db, { changes: 5_000, faults: 0.2, seed: 11 });
  console.info(JSON.stringify(outcome));
  expect(outcome).toMatchObject({ events: 11_250, lost: 0, falsified: 0, unforced: 0, faults: [] });
  expect(outcome.matched).toBe(outcome.deliveries);
  expect(outcome.failed / outcome.calls).toBeGreaterThan(0.19);
});

test("without faults no event arrives twice", { timeout: AN_HOUR }, async () => {
  const outcome = await soak(db, { changes: 5_000, faults: 0, seed: 11 });
  console.info(JSON.stringify(outcome));
  expect(outcome).toMatchObject({ events: 11_250, failed: 0, lost: 0, falsified: 0, duplicates: 0, faults: [] });
  expect(outcome).toMatchObject({ posts: outcome.deliveries, matched: outcome.deliveries });
});
