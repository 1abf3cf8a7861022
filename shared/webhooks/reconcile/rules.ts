/** What must hold of each delivery and of its webhook: state, attempts, place in the due index and gate agree. */
import * as z from "zod/mini";
import { keys } from "#shared/db/keys.ts";
import type { Attempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { LEASE_MS } from "#shared/webhooks/limiter/limiter.ts";
import type { Account } from "#shared/webhooks/reconcile/company-state.ts";
import type { Entry } from "#shared/webhooks/reconcile/due-index.ts";
import { MAX_ATTEMPTS } from "#shared/webhooks/retry-plan.ts";

/** What is due for so long has been found by the sweeper, however its message was lost. */
export const SWEPT_MS = 15 * 60_000;
/** The clocks of two functions, at most. */
const CLOCKS_DIFFER_MS = 60_000;

/** Of a webhook as a whole. */
export function accountFaults({ gate, slots, replay, webhook, webhookId, now, ...rows }: Account): string[] {
  const { deliveries, attempts, entries, unreadable } = rows;
  const faults = unreadable.map((id) => `${id}: has a row that cannot be read`);
  for (const id of attempts.keys()) if (!deliveries.has(id)) faults.push(`${id}: has attempts and no row`);
  for (const id of entries.keys()) if (!deliveries.has(id)) faults.push(`${id}: is in the due index and has no row`);
  const say = (fault: string): void => void faults.push(`webhook ${webhookId}: ${fault}`);
  const used = gate?.used ?? 0;
  if (used !== slots.length) say(`${used} places are counted, ${slots.length} are taken`);
  for (const { ids, until } of slots) {
    if (Date.parse(until) > now + LEASE_MS + CLOCKS_DIFFER_MS) say(`${ids.join()} has a place without an end`);
  }
  const isLate = (...times: readonly (string | undefined)[]): boolean =>
    times[0] !== undefined && times.every((time) => time === undefined || now - Date.parse(time) > SWEPT_MS);
  if (isLate(gate?.dueAt, gate?.lookUntil, gate?.emptySince))
    say("nobody has looked at its gate for a quarter of an hour");
  if (isLate(replay?.dueAt)) say("its replay has been due for a quarter of an hour");
  if (webhook?.status === "active" && isLate(webhook.dueAt)) say("its release has been due for a quarter of an hour");
  return faults;
}

export function deliveryFaults(
  delivery: StoredDelivery,
  attempts: readonly Attempt[],
  entries: readonly Entry[],
  isEntered: boolean,
  account: Account,
): string[] {
  const faults = [
    ...(isEntered ? [] : ["is not in the ledger"]),
    ...bodyFaults(delivery),
    ...attemptFaults(delivery, attempts),
    ...placeFaults(delivery, entries, account),
  ];
  return faults.map((fault) => `${delivery.id} (${delivery.state}): ${fault}`);
}

const Told = z.object({
  id: z.string(),
  webhookId: z.int(),
  registrationId: z.nullable(z.int()),
  event: z.string(),
});

function bodyFaults({ body, id, webhookId, registrationId, event }: StoredDelivery): string[] {
  if (body === undefined) return [];
  const told = Told.safeParse(parsed(body));
  if (!told.success) return ["its body tells of no delivery"];
  const { data } = told;
  const isOwn = data.id === id && data.webhookId === webhookId && data.registrationId === registrationId;
  return isOwn && data.event === event ? [] : ["its body tells of another delivery"];
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const isSuccess = ({ status }: Attempt): boolean => status !== null && status >= 200 && status < 300;

/** Numbered from 1 without a gap. A sender that died may have left the record of an attempt that is to be made again. */
function attemptFaults({ state, attempt, planFrom }: StoredDelivery, attempts: readonly Attempt[]): string[] {
  const faults: string[] = [];
  const numbers = attempts.map(({ number }) => number).toSorted((a, b) => a - b);
  if (numbers.some((number, i) => number !== i + 1)) faults.push(`its attempts are ${numbers.join(", ")}`);
  const isOver = state === "delivered" || state === "exhausted";
  const least = isOver ? attempt : attempt - 1;
  if (numbers.length < least || numbers.length > attempt) {
    faults.push(`has ${numbers.length} attempts, its row tells of ${least}`);
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

function placeFaults(delivery: StoredDelivery, entries: readonly Entry[], account: Account): string[] {
  const { state, dueShard, dueAt } = delivery;
  if (state !== "waiting") {
    const standing = dueShard === undefined ? [] : ["its row says that it is due"];
    return entries.length === 0 ? standing : [...standing, "is in the due index"];
  }
  const faults = waitingFaults(delivery, account);
  if (entries.length !== 1) faults.push(`has ${entries.length} entries in the due index`);
  const [entry] = entries;
  if (entry !== undefined && (entry.dueShard !== dueShard || entry.dueAt !== dueAt)) {
    faults.push("is due otherwise by its row than by the due index");
  }
  return faults;
}

function waitingFaults(
  { companyId, webhookId, registrationId, id, dueShard, dueAt }: StoredDelivery,
  account: Account,
) {
  const { webhook, registered, gate, now } = account;
  const isOverdue = now - Date.parse(dueAt) > SWEPT_MS;
  switch (dueShard) {
    case keys.dueShard(id):
      if (!isOverdue) return [];
      if (webhook === undefined) return ["waits for a webhook that is gone"];
      return registrationId === null || registered.has(registrationId)
        ? ["has been due for a quarter of an hour"]
        : ["waits for a registration that is gone"];
    case keys.heldShard(companyId, webhookId):
      if (webhook === undefined) return gate?.dueShard === undefined ? ["is kept for a webhook that is gone"] : [];
      return webhook.status === "paused" || webhook.dueAt !== undefined
        ? []
        : ["is kept for a webhook that is not paused"];
    case keys.gatedShard(companyId, webhookId):
      return gate?.dueShard === undefined ? ["waits at a gate that nobody looks after"] : [];
    default:
      return ["stands in no place of those that wait"];
  }
}
