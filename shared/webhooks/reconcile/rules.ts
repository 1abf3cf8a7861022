/** The rules of reconciliation: which other rows a state of a delivery requires or forbids. */
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { DELIVERY_SHARDS } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { debounceKeys, type FanOutLane, fanOutKeys } from "#shared/db/webhook-keys.ts";
import { jsonOf } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import type { Attempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { StoredWindow } from "#shared/webhooks/events/debounce.ts";
import { StoredFanOut, StoredProgress } from "#shared/webhooks/events/fan-out.ts";
import { LEASE_MS } from "#shared/webhooks/limiter/limiter.ts";
import type { DueEntry, WebhookState } from "#shared/webhooks/reconcile/webhook-state.ts";
import { MAX_ATTEMPTS } from "#shared/webhooks/retry-plan.ts";

/** The sweeper replaces a lost queue message within this time. */
const SWEPT_MS = 15 * 60_000;

/** Returns true if all given times are more than `SWEPT_MS` ago. Work that still waits then is a fault. */
const isLate = (now: number, times: readonly (string | undefined)[]): boolean =>
  times.every((time) => time === undefined || now - Date.parse(time) > SWEPT_MS);

export function webhookFaults({ limiter, replay, webhook, webhookId, now, ...rows }: WebhookState): string[] {
  const { deliveries, attempts, entries, unreadable } = rows;
  const faults = unreadable.map((id) => `${id}: has a row that cannot be read`);
  for (const id of attempts.keys()) if (!deliveries.has(id)) faults.push(`${id}: has attempts and no row`);
  for (const id of entries.keys()) if (!deliveries.has(id)) faults.push(`${id}: is in the due index and has no row`);
  const add = (fault: string): void => void faults.push(`webhook ${webhookId}: ${fault}`);
  const { used, slots } = limiter;
  if (used !== slots.length) add(`its limiter counts ${used} slots, ${slots.length} are in use`);
  for (const { ids, until } of slots) {
    const latest = now + LEASE_MS + limits.clockDifferenceMs;
    if (Date.parse(until) > latest) add(`${ids.join()} has a slot whose lease is too long`);
  }
  if (limiter.dueAt !== undefined && isLate(now, [limiter.dueAt, limiter.lookUntil, limiter.emptySince])) {
    add("its throttled backlog has not been drained for a quarter of an hour");
  }
  if (replay?.dueAt !== undefined && isLate(now, [replay.dueAt])) {
    add("its replay has been due for a quarter of an hour");
  }
  if (webhook?.status === "active" && webhook.dueAt !== undefined && isLate(now, [webhook.dueAt])) {
    add("its paused backlog has not been drained for a quarter of an hour");
  }
  return faults;
}

export function deliveryFaults(
  delivery: StoredDelivery,
  attempts: readonly Attempt[],
  entries: readonly DueEntry[],
  isExpected: boolean,
  state: WebhookState,
): string[] {
  const faults = [
    ...(isExpected ? [] : ["is not among the expected deliveries"]),
    ...bodyFaults(delivery),
    ...attemptFaults(delivery, attempts),
    ...dueFaults(delivery, entries, state),
  ];
  return faults.map((fault) => `${delivery.id} (${delivery.state}): ${fault}`);
}

const Body = z.object({ id: z.string(), webhookId: z.int(), registrationId: z.nullable(z.int()), event: z.string() });

function bodyFaults({ body, id, webhookId, registrationId, event }: StoredDelivery): string[] {
  if (body === undefined) return [];
  const parsed = Body.safeParse(jsonOf(body));
  if (!parsed.success) return ["its body describes no delivery"];
  const { data } = parsed;
  const isOwn = data.id === id && data.webhookId === webhookId && data.registrationId === registrationId;
  return isOwn && data.event === event ? [] : ["its body describes another delivery"];
}

const isSuccess = ({ status }: Attempt): boolean => status !== null && status >= 200 && status < 300;

/**
 * Attempts must be numbered from 1 without a gap. There may be one more than the delivery's row counts, if a sender was killed between
 * recording the attempt and changing this row.
 */
function attemptFaults({ state, attempt, planFrom }: StoredDelivery, attempts: readonly Attempt[]): string[] {
  const faults: string[] = [];
  const numbers = attempts.map(({ number }) => number).toSorted((a, b) => a - b);
  if (numbers.some((number, i) => number !== i + 1)) faults.push(`its attempts are ${numbers.join(", ")}`);
  const isOver = state === "delivered" || state === "exhausted";
  const least = isOver ? attempt : attempt - 1;
  if (numbers.length < least || numbers.length > attempt) {
    faults.push(`has ${numbers.length} attempts, its row says ${least}`);
  }
  const last = attempts.find(({ number }) => number === attempt);
  if (last !== undefined && isOver && isSuccess(last) !== (state === "delivered")) {
    faults.push(`its last attempt was answered ${last.status ?? "not at all"}`);
  }
  const planned = attempt - planFrom + 1;
  const isGivenUp = state === "exhausted" && last?.isUnsent === true;
  if (planned > MAX_ATTEMPTS || (state === "exhausted" && planned !== MAX_ATTEMPTS && !isGivenUp)) {
    faults.push(`is at attempt ${planned} of ${MAX_ATTEMPTS} of its plan`);
  }
  return faults;
}

function dueFaults(delivery: StoredDelivery, entries: readonly DueEntry[], webhook: WebhookState): string[] {
  const { state, dueShard, dueAt } = delivery;
  if (state !== "waiting") {
    const faults = dueShard === undefined ? [] : ["its row says that it is due"];
    return entries.length === 0 ? faults : [...faults, "is in the due index"];
  }
  const faults = waitingFaults(delivery, webhook);
  if (entries.length !== 1) faults.push(`has ${entries.length} entries in the due index`);
  const [entry] = entries;
  if (entry !== undefined && (entry.dueShard !== dueShard || entry.dueAt !== dueAt)) {
    faults.push("has another due time in its row than in the due index");
  }
  return faults;
}

function waitingFaults(
  { companyId, webhookId, registrationId, id, dueShard, dueAt }: StoredDelivery,
  { webhook, registered, limiter, now }: WebhookState,
): string[] {
  const [pausedShard, pausedBulkShard] = keys.pausedBacklogShards(companyId, webhookId);
  const [throttledShard, throttledBulkShard] = keys.throttledBacklogShards(companyId, webhookId);
  switch (dueShard) {
    case keys.dueShard(id):
      if (!isLate(now, [dueAt])) return [];
      if (webhook === undefined) return ["waits for a deleted webhook"];
      return registrationId === null || registered.has(registrationId)
        ? ["has been due for a quarter of an hour"]
        : ["waits for a deleted registration"];
    case pausedShard:
    case pausedBulkShard:
      // The drain of a deleted webhook's throttled backlog also cancels its paused backlog. Until this drain ends, the limiter's row has
      // `dueShard`.
      if (webhook === undefined) return limiter.dueShard === undefined ? ["is paused for a deleted webhook"] : [];
      return webhook.status === "paused" || webhook.dueAt !== undefined
        ? []
        : ["is paused for a webhook that is not paused"];
    case throttledShard:
    case throttledBulkShard:
      return limiter.dueShard === undefined ? ["is throttled, and its limiter is not marked"] : [];
    default:
      return ["is in an unknown partition of the due index"];
  }
}

/** The fields that `windowFaults` needs from the row of an event in a debounce window. It does not need the event's data. */
const WindowEvent = z.object({ type: z.literal("windowEvent"), deliveryId: z.string() });
const windowFields = [...new Set([...Object.keys(WindowEvent.shape), ...Object.keys(StoredWindow.shape)])];

/** Returns a fault if the number of stored events differs from the delivery's row (closed window) or the window's row (open window). */
export async function windowFaults(table: Reads, state: WebhookState): Promise<string[]> {
  const debounced = [...state.deliveries.values()].filter(
    (delivery) => delivery.body === undefined && delivery.sharedData === undefined && delivery.state !== "cancelled",
  );
  if (debounced.length === 0) return [];
  const { joined, open } = await readWindows(table, state);
  return debounced.flatMap(({ id, state: shown, closed }) => {
    const expected = closed?.eventCount ?? open.get(id);
    const found = joined.get(id) ?? 0;
    if (expected === undefined) return [`${id} (${shown}): has neither a body nor a debounce window`];
    return expected === found ? [] : [`${id} (${shown}): has ${found} events, its debounce window ${expected}`];
  });
}

/** Returns maps by delivery id: `joined` is the number of stored events, `open` the number according to the row of the open window. */
async function readWindows(table: Reads, { companyId, webhookId }: WebhookState) {
  const joined = new Map<string, number>();
  const open = new Map<string, number>();
  const shards = Array.from({ length: DELIVERY_SHARDS }, async (_, shard) => {
    for await (const item of table.query({
      ...debounceKeys.shard(companyId, webhookId, shard),
      fields: windowFields,
    })) {
      if (item.type === "windowEvent") {
        const { deliveryId } = WindowEvent.parse(item);
        joined.set(deliveryId, (joined.get(deliveryId) ?? 0) + 1);
      } else if (item.type === "window") {
        const { deliveryId, eventCount } = StoredWindow.parse(item);
        open.set(deliveryId, eventCount);
      }
    }
  });
  await Promise.all(shards);
  return { joined, open };
}

/** Maps the id of an event to whether the event's data exists. */
export type KnownData = Map<string, boolean>;

const TOGETHER = 25;

/** Returns a fault for each delivery that cannot be sent because the data of its event does not exist. */
export async function dataFaults(
  table: Reads,
  { companyId, deliveries }: WebhookState,
  known: KnownData,
): Promise<string[]> {
  const sharing = [...deliveries.values()].filter(({ sharedData, state }) => sharedData && state !== "cancelled");
  const unknown = [...new Set(sharing.map(({ eventId }) => eventId))].filter((eventId) => !known.has(eventId));
  for (let first = 0; first < unknown.length; first += TOGETHER) {
    const some = unknown.slice(first, first + TOGETHER);
    const wanted = some.map((eventId) => fanOutKeys.eventData(companyId, eventId));
    const found = new Set((await table.batchGet(wanted, { fields: ["pk"] })).map(({ pk }) => pk));
    for (const [i, eventId] of some.entries()) known.set(eventId, found.has(wanted[i]?.pk));
  }
  return sharing
    .filter(({ eventId }) => known.get(eventId) === false)
    .map(({ id, state }) => `${id} (${state}): the data of its event is gone`);
}

/** `expanding` is the number of deliveries that fan-outs have not created yet. `matched` does not include them. */
export async function readFanOuts(
  table: Reads,
  companyId: number,
  now: number,
): Promise<{ expanding: number; faults: string[] }> {
  const faults: string[] = [];
  let expanding = 0;
  const lanes: FanOutLane[] = [{ companyId }, { companyId, isBulk: true }];
  for (const lane of lanes) {
    const item = await table.get(fanOutKeys.progress(lane));
    const progress = item === undefined ? undefined : StoredProgress.parse(item);
    for await (const row of table.query(fanOutKeys.waiting(lane))) {
      const { eventId, createdAt, count, dueAt } = StoredFanOut.parse(row);
      const made = progress?.fanOut === fanOutKeys.fanOut(lane, createdAt, eventId).sk ? progress.made : 0;
      if (isLate(now, [dueAt, progress?.movedAt])) {
        faults.push(`event ${eventId}: its fan-out has not moved for a quarter of an hour`);
      }
      expanding += count - made;
    }
  }
  return { expanding, faults };
}
