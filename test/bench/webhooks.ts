/** Runs all webhook benches: read and write units of a delivered event, processor time of the matching, and delivery times. */
import { startFaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { useTestKms } from "../harness/kms.ts";
import type { Budget } from "./budget.ts";
import { matchingCosts } from "./webhook-matching.ts";
import { type DeliveryTimes, deliveryTimes } from "./webhook-times.ts";
import { deliveryUnits } from "./webhook-units.ts";

export interface WebhookFigures {
  readonly budgets: readonly Budget[];
  readonly times: readonly DeliveryTimes[];
}

export async function measureWebhooks(): Promise<WebhookFigures> {
  // Without log lines of the events, the terminal shows the results.
  process.env.LOG_LEVEL ??= "error";
  process.env.WEBHOOK_URL_POLICY = "local";
  await useTestKms();
  const db = await startFaultyDynamoDb();
  const units = await deliveryUnits(db).finally(() => db.stop());
  return { budgets: [...units, ...(await matchingCosts())], times: await deliveryTimes() };
}
