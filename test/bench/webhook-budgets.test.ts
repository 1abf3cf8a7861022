/** What a delivered event costs of the table is the same in each run. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "../fault/faulty-dynamodb.ts";
import { isHeld } from "./budget.ts";
import { deliveryUnits } from "./webhook-units.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

test("a delivered event takes no more write units than the budget", async () => {
  const budgets = await deliveryUnits(db);
  expect(budgets.filter((budget) => !isHeld(budget))).toEqual([]);
});
