/**
 * Extends the simulated webhook pipeline (delivery-pipeline.ts) with webhooks that have many registrations, and with changes of territories
 * of any size.
 */
import { iso } from "#shared/clock.ts";
import { contextOn, type EventContext } from "#shared/context.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { packed, type StoredTerritory } from "#shared/territories/territories.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import type { StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { sealedSecret } from "#shared/webhooks/subscriptions/secret.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { Killed } from "../harness/killable.ts";
import { consume, deliveriesOf, newPipeline, type Pipeline, START } from "./delivery-pipeline.ts";

export interface Subscribers {
  readonly webhooks: number;
  readonly each: number;
  readonly delayMinutes?: number;
  /** The JSON text of the filter that all registrations have. */
  readonly filter?: string;
}

export interface FanOutPipeline extends Pipeline {
  readonly webhookIds: readonly number[];
}

let nextId = 5_000_000;

/**
 * Creates webhooks with many registrations for `territory.updated`. The registration that `newPipeline` creates is for another event,
 * which no test publishes.
 */
export async function newFanOutPipeline(
  db: FaultyDynamoDb,
  { webhooks, each, delayMinutes = 0, filter }: Subscribers,
): Promise<FanOutPipeline> {
  const at = await newPipeline(db, "webhook.test");
  const { companyId } = at;
  const context = contextOn(db.direct);
  const { webhook } = await readWebhook(context, companyId, at.webhookId);
  const rows: (Key & Item)[] = [];
  const webhookIds: number[] = [];
  for (let i = 0; i < webhooks; i++) {
    const webhookId = nextId++;
    webhookIds.push(webhookId);
    // A secret is encrypted for one row, so each webhook needs a separate secret.
    const secret = await sealedSecret(context.secrets, { companyId, id: webhookId }, `secret of ${webhookId}`);
    const hook = { ...webhook, ...secret, id: webhookId, url: `http://127.0.0.1:1/${webhookId}` };
    rows.push({ ...keys.webhook(companyId, webhookId), ...hook });
    for (let j = 0; j < each; j++) rows.push(registrationRow(companyId, webhookId, delayMinutes, filter));
  }
  await db.direct.batchPut(rows);
  return Object.assign(at, { webhookIds });
}

function registrationRow(companyId: number, webhookId: number, delayMinutes: number, filter?: string): Key & Item {
  const id = nextId++;
  const row: StoredRegistration = {
    type: "registration",
    id,
    companyId,
    webhookId,
    event: "territory.updated",
    filter: filter ?? null,
    delayMinutes,
    triggerMode: "automatic",
    manualTriggerButtonText: null,
    createdAt: iso(START),
  };
  return { ...keys.registration(companyId, webhookId, id), ...row };
}

/** Returns the change of a territory to this version, `seconds` seconds after the start of the test. The polygon has `points` points. */
export function territoryChange(companyId: number, version: number, points = 3, seconds = 0): RowChange {
  const polygon = Array.from({ length: points }, (_, i): [number, number] => [-104 - noise(i), 39 + noise(i + 0.5)]);
  const row = (v: number): StoredTerritory & Item => ({
    type: "territory",
    id: 4_711,
    companyId,
    name: `North ${v}`,
    ...packed(polygon),
    totalProperties: v,
    assignedToUserId: null,
    createdAt: iso(START),
    updatedAt: iso(START + seconds * 1_000),
    createdBy: 1,
    updatedBy: 1,
    version: v,
  });
  return { before: row(version - 1), after: row(version) };
}

/** Returns a pseudo-random fraction. Its digits compress as badly as real coordinates, so that polygons have a realistic size. */
const noise = (i: number): number => Math.abs(Math.sin(i * 12.9898 + 78.233) * 43_758.5453) % 1;

/**
 * Processes the messages of fan-outs until the queue is empty. A fan-out is an event with many matches; each of its messages creates some
 * of the deliveries. Returns the ids of the deliveries that were queued.
 */
export async function expandAll(at: Pipeline): Promise<string[]> {
  const queued: string[] = [];
  for (let steps = 0; at.queue.length > 0; ) {
    at.queue.sort((a, b) => a.at - b.at);
    const next = at.queue.shift();
    if (next === undefined) break;
    if ("deliveryId" in next.message) {
      queued.push(next.message.deliveryId);
      continue;
    }
    if (++steps > 500) throw new Error("the fan-outs do not end");
    at.clock = Math.max(at.clock, next.at);
    try {
      await consume(at, next.message, next.isRepeat);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      at.queue.push({ message: next.message, at: at.clock + 90_000, isRepeat: true });
    }
  }
  return queued;
}

export interface Written {
  rows: number;
  bytes: number;
  /** The largest number of bytes that one call has written. */
  mostBytes: number;
}

export function counted(context: EventContext): { context: EventContext; written: Written } {
  const written: Written = { rows: 0, bytes: 0, mostBytes: 0 };
  const count = (items: readonly object[]): void => {
    const bytes = items.reduce((sum, item) => sum + sizeOf(item), 0);
    written.rows += items.length;
    written.bytes += bytes;
    written.mostBytes = Math.max(written.mostBytes, bytes);
  };
  const { table } = context;
  const seen: Table = {
    ...table,
    insert: (items) => {
      count(items);
      return table.insert(items);
    },
    batchPut: (items) => {
      count(items);
      return table.batchPut(items);
    },
    write: (entry) => {
      count([contentOf(entry)]);
      return table.write(entry);
    },
    transact: (writes) => {
      count(writes.map(contentOf));
      return table.transact(writes);
    },
  };
  return { context: { ...context, table: seen }, written };
}

const contentOf = (write: Write): object =>
  "put" in write ? write.put : "update" in write ? { ...write.change.set, ...write.change.add } : {};

const sizeOf = (item: object): number =>
  Object.values(item).reduce((sum: number, value) => {
    if (value instanceof Uint8Array) return sum + value.length;
    return sum + (value instanceof Set ? JSON.stringify([...value]) : (JSON.stringify(value) ?? "")).length;
  }, 0);

/** Returns the deliveries of all webhooks of the pipeline. */
export async function allDeliveries({ db, companyId, webhookIds }: FanOutPipeline): Promise<StoredDelivery[]> {
  const found = await Promise.all(webhookIds.map((webhookId) => deliveriesOf(db, { companyId, webhookId })));
  return found.flat();
}
