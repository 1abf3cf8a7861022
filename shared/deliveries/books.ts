/**
 * The books of a company's deliveries: matched = delivered + waiting + exhausted + cancelled. Compares the ledger, the rows,
 * their attempts, the due index and the gates, and names each fault.
 */

import type { Clock } from "#shared/clock.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { DELIVERY_SHARDS, keys } from "#shared/db/keys.ts";
import { ledgerKeys } from "#shared/db/ledger-keys.ts";
import type { Item, Table } from "#shared/db/table.ts";
import { deliveryFaults, type Entry } from "#shared/deliveries/book-rules.ts";
import { StoredGate, slotsIn } from "#shared/deliveries/gate.ts";
import { LedgerEntry } from "#shared/deliveries/ledger.ts";
import { StoredAttempt, StoredDelivery } from "#shared/deliveries/schema.ts";
import { limits } from "#shared/limits.ts";
import { readWebhooks, type WebhookRows } from "#shared/webhooks/webhooks.ts";

export interface Books {
  /** By the ledger, and those made by hand. */
  readonly matched: number;
  readonly delivered: number;
  readonly waiting: number;
  readonly exhausted: number;
  readonly cancelled: number;
  /** Of those that wait: kept by a paused webhook, and waiting at a gate. */
  readonly held: number;
  readonly gated: number;
  readonly attempts: number;
  readonly faults: readonly string[];
}

/** One webhook's part of the table, whether its row is there or not. */
export interface Account {
  readonly webhook: WebhookRows | undefined;
  readonly gate: StoredGate | undefined;
  readonly now: number;
}

/**
 * What is looked at while it changes may look wrong: what is at fault is looked at again, as often as `looks` says, with a
 * wait between.
 */
export async function reconcile(
  world: { readonly table: Table; readonly clock: Clock },
  companyId: number,
  looks: { readonly again: number; readonly wait: () => Promise<unknown> },
): Promise<Books> {
  let books = await readBooks(world, companyId);
  for (let i = 0; i < looks.again && books.faults.length > 0; i++) {
    await looks.wait();
    const next = await readBooks(world, companyId);
    // A fault that is real is there at every look.
    books = { ...next, faults: next.faults.filter((fault) => books.faults.includes(fault)) };
  }
  return books;
}

interface Rows {
  readonly deliveries: Map<string, StoredDelivery>;
  readonly attempts: Map<string, StoredAttempt[]>;
  readonly faults: string[];
}

async function readBooks({ table, clock }: { table: Table; clock: Clock }, companyId: number): Promise<Books> {
  const now = clock.now();
  // The ledger before the rows: what is entered meanwhile is not missed among them.
  const ledger = await readLedger(table, companyId, now);
  const webhooks = new Map((await readWebhooks(table, companyId)).map((rows) => [rows.webhook.id, rows]));
  const due = await readDue(table, companyId);
  const counts = { matched: 0, delivered: 0, waiting: 0, exhausted: 0, cancelled: 0, held: 0, gated: 0, attempts: 0 };
  const faults: string[] = [];
  const webhookIds = new Set([...webhooks.keys(), ...ledger.keys(), ...due.keys()]);
  for (const webhookId of [...webhookIds].toSorted((a, b) => a - b)) {
    const gate = await readGate(table, companyId, webhookId, faults);
    const entries = due.get(webhookId) ?? new Map<string, Entry[]>();
    await addHeld(table, companyId, webhookId, entries);
    const { deliveries, attempts, faults: unreadable } = await readRows(table, companyId, webhookId, now);
    const account = { webhook: webhooks.get(webhookId), gate, now };
    faults.push(...unreadable);
    const entered = ledger.get(webhookId) ?? new Set<string>();
    for (const id of entered) if (!deliveries.has(id)) faults.push(`${id}: is in the ledger and has no row`);
    for (const id of attempts.keys()) if (!deliveries.has(id)) faults.push(`${id}: has attempts and no row`);
    for (const id of entries.keys()) if (!deliveries.has(id)) faults.push(`${id}: is in the due index and has no row`);
    for (const delivery of deliveries.values()) {
      const { id, state, dueShard } = delivery;
      const made = attempts.get(id) ?? [];
      counts[state]++;
      counts.attempts += made.length;
      if (dueShard === keys.heldShard(companyId, webhookId)) counts.held++;
      if (dueShard === keys.gatedShard(companyId, webhookId)) counts.gated++;
      faults.push(...deliveryFaults(delivery, made, entries.get(id) ?? [], entered.has(id), account));
    }
    // What was made by hand stands in no ledger: its row speaks for itself.
    counts.matched += entered.size + [...deliveries.keys()].filter((id) => !entered.has(id)).length;
  }
  const { matched, delivered, waiting, exhausted, cancelled } = counts;
  const sum = delivered + waiting + exhausted + cancelled;
  if (matched !== sum) faults.push(`matched ${matched} is not delivered + waiting + exhausted + cancelled, ${sum}`);
  return { ...counts, faults };
}

const DAY_MS = 86_400_000;

/** Deliveries that had to be made, by webhook; those whose time is over are left out. */
async function readLedger(table: Table, companyId: number, now: number): Promise<Map<number, Set<string>>> {
  const entered = new Map<number, Set<string>>();
  // An event's day may be tomorrow by another clock.
  for (let at = now - limits.deliveryKeptMs; at < now + 2 * DAY_MS; at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    for await (const item of table.query(ledgerKeys.day(companyId, day))) {
      const { deliveries, expiresAt } = LedgerEntry.parse(item);
      if (isOver(expiresAt, now)) continue;
      for (const { webhookId, id } of deliveries) {
        entered.set(webhookId, (entered.get(webhookId) ?? new Set()).add(id));
      }
    }
  }
  return entered;
}

/** The table takes rows away some time after they are over: until then they count no more. */
const isOver = (expiresAt: number, now: number): boolean => expiresAt * 1_000 <= now;

/** Entries of the due index by webhook and delivery. */
async function readDue(table: Table, companyId: number): Promise<Map<number, Map<string, Entry[]>>> {
  const found = new Map<number, Map<string, Entry[]>>();
  const own = new RegExp(`^C#${companyId}#D#(\\d+)#\\d+$`);
  for (const shard of keys.dueShards()) {
    for await (const item of table.query({ pk: shard, index: "due" })) {
      const [, webhookId] = own.exec(String(item.pk)) ?? [];
      if (webhookId === undefined) continue;
      const entries = found.get(Number(webhookId)) ?? new Map<string, Entry[]>();
      found.set(Number(webhookId), entries);
      addEntry(entries, item);
    }
  }
  return found;
}

async function addHeld(
  table: Table,
  companyId: number,
  webhookId: number,
  entries: Map<string, Entry[]>,
): Promise<void> {
  for (const pk of [keys.heldShard(companyId, webhookId), keys.gatedShard(companyId, webhookId)]) {
    for await (const item of table.query({ pk, index: "due" })) addEntry(entries, item);
  }
}

function addEntry(entries: Map<string, Entry[]>, item: Item): void {
  const id = String(item.sk).slice("D#".length);
  const entry = { dueShard: String(item.dueShard), dueAt: String(item.dueAt) };
  entries.set(id, [...(entries.get(id) ?? []), entry]);
}

async function readGate(
  table: Table,
  companyId: number,
  webhookId: number,
  faults: string[],
): Promise<StoredGate | undefined> {
  const item = await table.get(gateKeys.gate(companyId, webhookId));
  if (item === undefined) return undefined;
  const gate = StoredGate.parse(item);
  const slots = slotsIn(item).length;
  if (gate.used !== slots) faults.push(`webhook ${webhookId}: ${gate.used} places are counted, ${slots} are taken`);
  return gate;
}

async function readRows(table: Table, companyId: number, webhookId: number, now: number): Promise<Rows> {
  const rows: Rows = { deliveries: new Map(), attempts: new Map(), faults: [] };
  for (let shard = 0; shard < DELIVERY_SHARDS; shard++) {
    for await (const item of table.query(keys.deliveryShard(companyId, webhookId, shard))) addRow(rows, item, now);
  }
  return rows;
}

function addRow({ deliveries, attempts, faults }: Rows, item: Item, now: number): void {
  if (typeof item.expiresAt === "number" && isOver(item.expiresAt, now)) return;
  const [, id = String(item.sk)] = /^D#([^#]+)/.exec(String(item.sk)) ?? [];
  try {
    if (item.type === "attempt") attempts.set(id, [...(attempts.get(id) ?? []), StoredAttempt.parse(item)]);
    else deliveries.set(id, StoredDelivery.parse(item));
  } catch {
    faults.push(`${id}: has a row that cannot be read`);
  }
}
