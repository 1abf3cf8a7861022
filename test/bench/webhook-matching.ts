/** Measures the processor time in which the service finds the registrations that match an event. */
import * as limits from "#shared/limits.ts";
import type { DomainEvent } from "#shared/webhooks/catalogue.ts";
import { matchingSubscriptions, subscriptionsOf } from "#shared/webhooks/events/matching.ts";
import type { WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";
import { storedRegistration } from "#shared/webhooks/subscriptions/webhooks.ts";
import { type Budget, budgetsOf } from "./budget.ts";
import { medianOf } from "./clock.ts";

const EVENTS = 100;
const RUNS = 9;
/** Numbers of registrations. The last one is the maximum of a company. */
const COUNTS = [1, 100, 1_000, limits.webhooksPerCompany * limits.registrationsPerWebhook] as const;
const AT = "2026-05-02T00:00:00.000Z";

/** Returns webhooks with `count` registrations together. One registration in ten matches the event. */
function company(count: number): WebhookRows[] {
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

/** The registrations are prepared once for a batch of events, as in the service. */
export async function matchingCosts(): Promise<Budget[]> {
  const costs: Budget[] = [];
  for (const count of COUNTS) {
    let matched = 0;
    const { cpuMs } = await medianOf(RUNS, () => {
      const subscriptions = subscriptionsOf(company(count));
      for (let i = 0; i < EVENTS; i++) {
        const data = { newStatus: { value: "Sold" }, prospect: { id: i, assignedTo: { id: i % 10 } } };
        matched += matchingSubscriptions(event(data), subscriptions).length;
      }
    });
    if (matched === 0) throw new Error("nothing matched");
    const text = `matching of an event against ${count} registrations, processor time, microseconds`;
    costs.push(budgetsOf("")(0, text, null, (1_000 * cpuMs) / EVENTS));
  }
  return costs;
}
