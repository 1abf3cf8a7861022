/** Runs all webhook benches: units of a delivered event, processor time of the matching, and delivery times. */

import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import type { DomainEvent } from "#shared/webhooks/catalogue.ts";
import { matchingSubscriptions, subscriptionsOf } from "#shared/webhooks/events/matching.ts";
import { storedRegistration, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { useTestKms } from "../harness/kms.ts";
import { drain, newPipeline, type Pipeline, publish } from "../webhooks/delivery-pipeline.ts";
import { type Budget, budgetsOf } from "./budget.ts";
import { medianOf } from "./clock.ts";
import { type BenchCompany, makeProspect } from "./prospects.ts";
import { type DeliveryTimes, deliveryTimes } from "./webhook-times.ts";

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

/** Number of delivered events. The result is the mean of their costs, because their bodies differ in length. */
const DELIVERED = 50;

async function benchCompany({ db, companyId }: Pipeline): Promise<BenchCompany> {
  const { statuses, users } = await loadDictionary(db.direct, companyId);
  const [ownerId = 0] = [...users.keys()];
  const count = 100_000;
  return { id: companyId, ownerId, statuses: [...statuses.values()], repIds: [ownerId], tagIds: [], firstId: 1, count };
}

async function deliveryUnits(db: FaultyDynamoDb): Promise<Budget[]> {
  const scene = await newPipeline(db);
  const company = await benchCompany(scene);
  const sums = { publish: 0, send: 0, reads: 0, requests: 0 };
  for (let i = 0; i < DELIVERED; i++) {
    const { importId: _, ...after } = makeProspect(company, i).prospect;
    const published = await metered(() =>
      publish({ ...scene, change: { before: undefined, after: prospectItem(after) } }),
    );
    const sent = await metered(() => drain(scene));
    sums.publish += published.usage.writeUnits;
    sums.send += sent.usage.writeUnits;
    sums.reads += sent.usage.readUnits;
    sums.requests += published.usage.requests + sent.usage.requests;
  }
  if (scene.posts.length !== DELIVERED) throw new Error(`${scene.posts.length} of ${DELIVERED} events were sent`);
  const bytes = scene.posts.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
  const line = (text: string, limit: number | null, sum: number) => budgetsOf("")(0, text, limit, sum / DELIVERED);
  return [
    line("delivered event, write units", 8, sums.publish + sums.send),
    line("of them for the delivery and its entry in the due index", null, sums.publish),
    line("of them for its limiter slot, attempt and result", null, sums.send),
    line("delivered event, read units of the sender", null, sums.reads),
    line("requests to the table, beside a send, a receive and a delete of the queue", null, sums.requests),
    line("bytes of its body", null, bytes),
  ];
}

const MATCHED = 100;
const RUNS = 9;
/** Numbers of registrations with which the matching is measured. The last number is a company's maximum. */
const COUNTS = [1, 100, 1_000, limits.webhooksPerCompany * limits.registrationsPerWebhook] as const;
const AT = "2026-05-02T00:00:00.000Z";

/** Returns webhooks with `count` registrations together. One registration in ten matches the event. */
function webhooksWith(count: number): WebhookRows[] {
  const webhooks = Array.from({ length: Math.ceil(count / limits.registrationsPerWebhook) }, (_, i): WebhookRows => {
    const id = i + 1;
    const times = { createdAt: AT, updatedAt: AT };
    const secret = { sealedSecret: new Uint8Array(), secretMask: "" };
    const named = { companyId: 1, name: `Webhook ${id}`, url: "https://example.com/", ...secret };
    return {
      webhook: { type: "webhook", id, ...named, status: "active", registrationCount: 0, ...times },
      registrations: [],
    };
  });
  for (let i = 0; i < count; i++) {
    const at = webhooks[Math.floor(i / limits.registrationsPerWebhook)];
    const filter = { "newStatus.value": ["Sold", "Interested"], "prospect.assignedTo": { id: i % 10 } };
    const input = { event: "prospect.status_changed", filter, delayMinutes: 0, manualTriggerButtonText: null };
    const registration = { ...input, triggerMode: "automatic" as const };
    at?.registrations.push(storedRegistration(1, at.webhook.id, 10_000 + i, registration, AT));
  }
  return webhooks;
}

const event = (data: Record<string, unknown>): DomainEvent => {
  const created = { id: "x", event: "prospect.status_changed" as const, createdAt: AT };
  return { ...created, companyId: 1, recordId: 1, version: 1, data };
};

/**
 * Measures the processor time of finding the registrations that match an event. As in the service, the registrations are prepared once for
 * a batch of events.
 */
async function matchingCosts(): Promise<Budget[]> {
  const costs: Budget[] = [];
  for (const count of COUNTS) {
    let matched = 0;
    const { cpuMs } = await medianOf(RUNS, () => {
      const subscriptions = subscriptionsOf(webhooksWith(count));
      for (let i = 0; i < MATCHED; i++) {
        const data = { newStatus: { value: "Sold" }, prospect: { id: i, assignedTo: { id: i % 10 } } };
        matched += matchingSubscriptions(event(data), subscriptions).length;
      }
    });
    if (matched === 0) throw new Error("nothing matched");
    const text = `matching of an event against ${count} registrations, processor time, microseconds`;
    costs.push(budgetsOf("")(0, text, null, (1_000 * cpuMs) / MATCHED));
  }
  return costs;
}
