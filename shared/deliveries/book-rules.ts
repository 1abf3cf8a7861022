/** What must hold of each delivery: its state, its attempts, its place in the due index and its webhook agree. */
import { keys } from "#shared/db/keys.ts";
import type { Account } from "#shared/deliveries/books.ts";
import { MAX_ATTEMPTS } from "#shared/deliveries/plan.ts";
import type { StoredAttempt, StoredDelivery } from "#shared/deliveries/schema.ts";

/** Of the due index. */
export interface Entry {
  readonly dueShard: string;
  readonly dueAt: string;
}

/** A delivery due for so long has been found by the sweeper, however its message was lost. */
const SWEPT_MS = 15 * 60_000;

export function deliveryFaults(
  delivery: StoredDelivery,
  attempts: readonly StoredAttempt[],
  entries: readonly Entry[],
  isEntered: boolean,
  account: Account,
): string[] {
  const faults = [
    ...ledgerFaults(delivery, isEntered),
    ...attemptFaults(delivery, attempts),
    ...placeFaults(delivery, entries, account),
  ];
  return faults.map((fault) => `${delivery.id} (${delivery.state}): ${fault}`);
}

/** Deliveries by hand and tests are made without an event of the ledger. */
function ledgerFaults({ trigger }: StoredDelivery, isEntered: boolean): string[] {
  return trigger === "automatic" && !isEntered ? ["is not in the ledger"] : [];
}

const isSuccess = ({ status }: StoredAttempt): boolean => status !== null && status >= 200 && status < 300;

/** Numbered from 1 without a gap. A sender that died may have left the record of an attempt that is to be made again. */
function attemptFaults({ state, attempt, planFrom }: StoredDelivery, attempts: readonly StoredAttempt[]): string[] {
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
  if (planned > MAX_ATTEMPTS || (state === "exhausted" && planned !== MAX_ATTEMPTS)) {
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
  const { webhook, gate, now } = account;
  const isOverdue = now - Date.parse(dueAt) > SWEPT_MS;
  switch (dueShard) {
    case keys.dueShard(id):
      if (!isOverdue) return [];
      if (webhook === undefined) return ["waits for a webhook that is gone"];
      return registrationId === null || webhook.registrations.some(({ id: own }) => own === registrationId)
        ? ["has been due for a quarter of an hour"]
        : ["waits for a registration that is gone"];
    case keys.heldShard(companyId, webhookId):
      if (webhook === undefined) return gate?.dueShard === undefined ? ["is kept for a webhook that is gone"] : [];
      return webhook.webhook.status === "paused" || webhook.webhook.dueAt !== undefined
        ? []
        : ["is kept for a webhook that is not paused"];
    case keys.gatedShard(companyId, webhookId):
      return gate?.dueShard === undefined ? ["waits at a gate that nobody looks after"] : [];
    default:
      return ["stands in no place of those that wait"];
  }
}
