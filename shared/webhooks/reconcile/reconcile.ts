/**
 * The books of a company's deliveries: matched = delivered + waiting + exhausted + cancelled. Compares the ledger, the rows,
 * their attempts, the events of windows, the due index and the gates, and names each fault.
 */

import type { Clock } from "#shared/clock.ts";
import { ledgerKeys } from "#shared/db/expected-keys.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { attemptsOf } from "#shared/webhooks/delivery.ts";
import { standingOf } from "#shared/webhooks/delivery-status.ts";
import { FanOutEntry, LedgerEntry } from "#shared/webhooks/expected-deliveries.ts";
import { isOver, readAccount } from "#shared/webhooks/reconcile/company-state.ts";
import { type Entries, readDue } from "#shared/webhooks/reconcile/due-index.ts";
import { dataFaults, type KnownData, readFanOuts } from "#shared/webhooks/reconcile/fan-outs.ts";
import { accountFaults, deliveryFaults } from "#shared/webhooks/reconcile/rules.ts";
import { windowFaults } from "#shared/webhooks/reconcile/windows.ts";
import { readWebhooks, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

interface Counts {
  /** What had to be made: by the ledger, and what has a row and no entry, which is a fault. */
  readonly matched: number;
  readonly delivered: number;
  readonly waiting: number;
  readonly exhausted: number;
  readonly cancelled: number;
  /** Of those that wait: kept by a paused webhook, and waiting at a gate. */
  readonly held: number;
  readonly gated: number;
  readonly attempts: number;
  /** Matches of events that are still being fanned out: they are not among what matched until their deliveries are made. */
  readonly expanding: number;
}

export interface Books extends Counts {
  readonly faults: readonly string[];
}

interface ApiContext {
  readonly table: Table;
  readonly clock: Clock;
}

/**
 * What is looked at while it changes may look wrong: what is at fault is looked at again, as often as `looks` says, with a
 * wait between.
 */
export async function reconcile(
  context: ApiContext,
  companyId: number,
  looks: { readonly again: number; readonly wait: () => Promise<unknown> },
): Promise<Books> {
  let books = await readBooks(context, companyId);
  for (let i = 0; i < looks.again && books.faults.length > 0; i++) {
    await looks.wait();
    const next = await readBooks(context, companyId);
    // A fault that is real is there at every look.
    books = { ...next, faults: next.faults.filter((fault) => books.faults.includes(fault)) };
  }
  return books;
}

async function readBooks({ table, clock }: ApiContext, companyId: number): Promise<Books> {
  const now = clock.now();
  // The ledger before the rows: what is entered meanwhile is not missed among them.
  const { entered: ledger, fanOuts } = await readLedger(table, companyId, now);
  const { expanding, faults: fanOutFaults } = await readFanOuts(table, companyId, fanOuts, now);
  const webhooks = new Map((await readWebhooks(table, companyId)).map((rows) => [rows.webhook.id, rows]));
  const due = await readDue(table, companyId);
  const sums = { matched: 0, delivered: 0, waiting: 0, exhausted: 0, cancelled: 0, held: 0, gated: 0, attempts: 0 };
  const faults: string[] = [...fanOutFaults];
  const known: KnownData = new Map();
  const webhookIds = new Set([...webhooks.keys(), ...ledger.keys(), ...due.keys()]);
  for (const webhookId of [...webhookIds].toSorted((a, b) => a - b)) {
    const part = {
      webhook: webhooks.get(webhookId),
      entered: ledger.get(webhookId) ?? new Set<string>(),
      due: due.get(webhookId) ?? new Map(),
      known,
    };
    const found = await readPart(table, companyId, webhookId, part, now);
    for (const name of countNames) sums[name] += found[name];
    // One by one: a call takes some 120 000 arguments, and as many deliveries may be at fault.
    for (const fault of found.faults) faults.push(fault);
  }
  const sum = sums.delivered + sums.waiting + sums.exhausted + sums.cancelled;
  if (sums.matched !== sum) {
    faults.push(`matched ${sums.matched} is not delivered + waiting + exhausted + cancelled, ${sum}`);
  }
  return { ...sums, expanding, faults };
}

const countNames = ["matched", "delivered", "waiting", "exhausted", "cancelled", "held", "gated", "attempts"] as const;

interface Part {
  readonly webhook: WebhookRows | undefined;
  readonly entered: ReadonlySet<string>;
  readonly due: Entries;
  readonly known: KnownData;
}

/** Of one webhook, whether its row is there or not. */
async function readPart(
  table: Table,
  companyId: number,
  webhookId: number,
  { webhook, entered, due, known }: Part,
  now: number,
): Promise<Omit<Books, "expanding">> {
  const account = await readAccount(table, companyId, webhookId, webhook, due, now);
  const { deliveries, attempts, entries } = account;
  const counts = { delivered: 0, waiting: 0, exhausted: 0, cancelled: 0, held: 0, gated: 0, attempts: 0 };
  const faults = accountFaults(account);
  for (const id of entered) if (!deliveries.has(id)) faults.push(`${id}: is in the ledger and has no row`);
  for (const delivery of deliveries.values()) {
    const { id, registrationId, dueShard } = delivery;
    const isWanted = registrationId === null ? webhook !== undefined : account.registered.has(registrationId);
    const standing = standingOf(delivery, isWanted);
    const made = attemptsOf(delivery, attempts.get(id) ?? []);
    counts[standing]++;
    counts.attempts += made.length;
    if (standing === "waiting" && dueShard === keys.heldShard(companyId, webhookId)) counts.held++;
    if (standing === "waiting" && dueShard === keys.gatedShard(companyId, webhookId)) counts.gated++;
    faults.push(...deliveryFaults(delivery, made, entries.get(id) ?? [], entered.has(id), account));
  }
  for (const fault of await windowFaults(table, companyId, webhookId, deliveries)) faults.push(fault);
  for (const fault of await dataFaults(table, companyId, deliveries.values(), known)) faults.push(fault);
  const matched = entered.size + [...deliveries.keys()].filter((id) => !entered.has(id)).length;
  return { matched, ...counts, faults };
}

const DAY_MS = 86_400_000;

interface Ledger {
  /** Deliveries that had to be made, by webhook; those whose time is over are left out. */
  readonly entered: Map<number, Set<string>>;
  /** Events that had to be fanned out, by their ids. */
  readonly fanOuts: Map<string, FanOutEntry>;
}

async function readLedger(table: Table, companyId: number, now: number): Promise<Ledger> {
  const entered = new Map<number, Set<string>>();
  const fanOuts = new Map<string, FanOutEntry>();
  const days: string[] = [];
  // An event's day may be tomorrow by another clock.
  for (let at = now - limits.deliveryKeptMs; at < now + 2 * DAY_MS; at += DAY_MS) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  await Promise.all(
    days.map(async (day) => {
      for await (const item of table.query(ledgerKeys.day(companyId, day))) {
        if (item.type === "fanOut") {
          const fanOut = FanOutEntry.parse(item);
          fanOuts.set(fanOut.eventId, fanOut);
          continue;
        }
        const { deliveries, expiresAt } = LedgerEntry.parse(item);
        if (isOver(expiresAt, now)) continue;
        for (const { webhookId, id } of deliveries) {
          entered.set(webhookId, (entered.get(webhookId) ?? new Set()).add(id));
        }
      }
    }),
  );
  return { entered, fanOuts };
}
