/** Tests the budget of write units of a delivered event, which `npm run bench` shows. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { isHeld } from "./budget.ts";
import { deliveryUnits } from "./webhook-units.ts";

const db = faultyDynamoDb();
beforeAll(() => void vi.stubEnv("WEBHOOK_URL_POLICY", "local"));
afterAll(() => void vi.unstubAllEnvs());

test("a delivered event costs no more write units than its budget", async () => {
  const budgets = await deliveryUnits(db);
  expect(budgets.filter(({ limit }) => limit !== null)).toHaveLength(1);
  expect(budgets.filter((budget) => !isHeld(budget))).toEqual([]);
});
