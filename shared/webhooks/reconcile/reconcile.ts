/**
 * Checks the deliveries of a company: each expected delivery must exist, and be delivered, waiting, exhausted or cancelled. Its attempts,
 * debounce window, limiter and entry in the due index must agree with its row.
 */
import { DAY_MS } from "#shared/clock.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { expectedKeys } from "#shared/db/webhook-keys.ts";
import * as limits from "#shared/limits.ts";
import { attemptsOf, effectiveState } from "#shared/webhooks/delivery.ts";
import { ExpectedEntry } from "#shared/webhooks/expected-deliveries.ts";
import {
  dataFaults,
  deliveryFaults,
  type KnownData,
  readFanOuts,
  webhookFaults,
  windowFaults,
} from "#shared/webhooks/reconcile/rules.ts";
import { isExpired, readDue, readWebhookState, type WebhookState } from "#shared/webhooks/reconcile/webhook-state.ts";
import { readWebhooks, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

const noCounts = {
  /** Number of deliveries that are expected or exist. A delivery that is expected but does not exist, or vice versa, is also a fault. */
  matched: 0,
  delivered: 0,
  waiting: 0,
  exhausted: 0,
  cancelled: 0,
  paused: 0,
  throttled: 0,
  attempts: 0,
};
type Counts = typeof noCounts;

export interface Reconciliation extends Counts {
  /** Number of deliveries that fan-outs have not created yet. They are not included in `matched`. */
  readonly expanding: number;
  readonly faults: readonly string[];
}

/** Checks up to `again` times more, and reports only faults that every check finds, because a row may change during a check. */
export async function reconcile(
  context: ReadContext,
  companyId: number,
  checks: { readonly again: number; readonly wait: () => Promise<unknown> },
): Promise<Reconciliation> {
  let found = await reconcileOnce(context, companyId);
  for (let i = 0; i < checks.again && found.faults.length > 0; i++) {
    await checks.wait();
    const earlier = new Set(found.faults);
    const next = await reconcileOnce(context, companyId);
    found = { ...next, faults: next.faults.filter((fault) => earlier.has(fault)) };
  }
  return found;
}

async function reconcileOnce({ table, clock }: ReadContext, companyId: number): Promise<Reconciliation> {
  const now = clock.now();
  // Read the list before the deliveries. Otherwise, a delivery that is created between the two reads would look lost.
  const expected = await readExpected(table, companyId, now);
  const { expanding, faults: fanOutFaults } = await readFanOuts(table, companyId, now);
  const webhooks = new Map((await readWebhooks(table, companyId)).map((rows) => [rows.webhook.id, rows]));
  const due = await readDue(table, companyId);
  const sums = { ...noCounts };
  const faults: string[] = [...fanOutFaults];
  const known: KnownData = new Map();
  const webhookIds = new Set([...webhooks.keys(), ...expected.keys(), ...due.keys()]);
  for (const webhookId of [...webhookIds].toSorted((a, b) => a - b)) {
    const rows: WebhookRows | undefined = webhooks.get(webhookId);
    const state = await readWebhookState(table, { companyId, webhookId }, rows, due.get(webhookId) ?? [], now);
    const found = await reconcileWebhook(table, state, expected.get(webhookId) ?? new Set(), known);
    for (const name of countNames) sums[name] += found[name];
    // Do not write `faults.push(...found.faults)`: a call accepts only about 120 000 arguments.
    for (const fault of found.faults) faults.push(fault);
  }
  const sum = sums.delivered + sums.waiting + sums.exhausted + sums.cancelled;
  if (sums.matched !== sum) {
    faults.push(`matched ${sums.matched} is not delivered + waiting + exhausted + cancelled, ${sum}`);
  }
  return { ...sums, expanding, faults };
}

const countNames = [
  "matched",
  "delivered",
  "waiting",
  "exhausted",
  "cancelled",
  "paused",
  "throttled",
  "attempts",
] as const satisfies (keyof Counts)[];

async function reconcileWebhook(
  table: Reads,
  state: WebhookState,
  expected: ReadonlySet<string>,
  known: KnownData,
): Promise<Omit<Reconciliation, "expanding">> {
  const { companyId, webhookId, webhook, registered, deliveries, attempts, entries } = state;
  const counts = { ...noCounts, matched: expected.size };
  const faults = webhookFaults(state);
  for (const id of expected) if (!deliveries.has(id)) faults.push(`${id}: is expected and has no row`);
  for (const delivery of deliveries.values()) {
    const { id, registrationId, dueShard } = delivery;
    const isWanted = registrationId === null ? webhook !== undefined : registered.has(registrationId);
    const shown = effectiveState(delivery, isWanted);
    const made = attemptsOf(delivery, attempts.get(id) ?? []);
    counts[shown]++;
    counts.attempts += made.length;
    if (!expected.has(id)) counts.matched++;
    if (shown === "waiting" && keys.isPausedBacklog(companyId, webhookId, dueShard)) counts.paused++;
    if (shown === "waiting" && keys.isThrottledBacklog(companyId, webhookId, dueShard)) counts.throttled++;
    faults.push(...deliveryFaults(delivery, made, entries.get(id) ?? [], expected.has(id), state));
  }
  for (const fault of await windowFaults(table, state)) faults.push(fault);
  for (const fault of await dataFaults(table, state, known)) faults.push(fault);
  return { ...counts, faults };
}

/** Maps the id of a webhook to the ids of its expected deliveries. Expired deliveries are not included. */
async function readExpected(table: Reads, companyId: number, now: number): Promise<Map<number, Set<string>>> {
  const deliveries = new Map<number, Set<string>>();
  const days: string[] = [];
  // An entry is stored under the day of its event. A delivery is due up to 30 days later, and kept for 30 more. Tomorrow is included,
  // because the clock of the function that wrote an event may be ahead.
  const oldest = now - limits.deliveryKeptMs - limits.delayMinutesMax * 60_000;
  for (let at = oldest; at < now + 2 * DAY_MS; at += DAY_MS) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  await Promise.all(
    days.map(async (day) => {
      for await (const item of table.query(expectedKeys.day(companyId, day))) {
        const entry = ExpectedEntry.parse(item);
        if (isExpired(entry.expiresAt, now)) continue;
        for (const { webhookId, id } of entry.deliveries) {
          deliveries.set(webhookId, (deliveries.get(webhookId) ?? new Set()).add(id));
        }
      }
    }),
  );
  return deliveries;
}
