/**
 * Extends the simulated pipeline (pipeline.ts) with webhooks that have many registrations, and with changes of large territories.
 */
import { iso } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { packed, type StoredTerritory } from "#shared/territories/territories.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import type { StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { sealedSecret } from "#shared/webhooks/subscriptions/secret.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { Killed } from "../harness/killable.ts";
import { START } from "./fixtures.ts";
import { consume, newPipeline, type Pipeline } from "./pipeline.ts";
import { deliveriesOf } from "./stored-deliveries.ts";

export interface Subscribers {
  readonly webhooks: number;
  readonly each: number;
  readonly delayMinutes?: number;
  /** The JSON text of a filter. */
  readonly filter?: string;
}

export interface FanOutPipeline extends Pipeline {
  readonly webhookIds: readonly number[];
}

let nextId = 5_000_000;

/** Creates webhooks with many registrations for `territory.updated`. */
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
    // A secret is encrypted for one row, so each webhook needs its own.
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

/** Returns the change of a territory to this version, `seconds` seconds after the start of the test. */
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

/** A pseudo-random fraction, whose digits compress as badly as real coordinates. */
const noise = (i: number): number => Math.abs(Math.sin(i * 12.9898 + 78.233) * 43_758.5453) % 1;

/**
 * Processes messages until the queue is empty. Each message creates some of the deliveries of an event with many matches. Returns the ids
 * of the deliveries that were queued.
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
      if (at.kill?.withQueue) at.queue.length = 0;
      else at.queue.push({ message: next.message, at: at.clock + 90_000, isRepeat: true });
    }
  }
  return queued;
}

export async function allDeliveries({ db, companyId, webhookIds }: FanOutPipeline): Promise<StoredDelivery[]> {
  const found = await Promise.all(webhookIds.map((webhookId) => deliveriesOf(db, { companyId, webhookId })));
  return found.flat();
}
