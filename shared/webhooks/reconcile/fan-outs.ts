/** Of events with many deliveries, for the books: those that are entered are done or still there, somebody goes on with them, and their data is there. */
import { fanOutKeys } from "#shared/db/fan-out-keys.ts";
import type { Table } from "#shared/db/table.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { StoredFanOut, StoredProgress } from "#shared/webhooks/events/fan-out.ts";
import type { FanOutEntry } from "#shared/webhooks/expected-deliveries.ts";
import { isOver } from "#shared/webhooks/reconcile/company-state.ts";
import { SWEPT_MS } from "#shared/webhooks/reconcile/rules.ts";

export interface FanOuts {
  /** Matches that nothing is made of yet, and so are not among what matched. */
  readonly expanding: number;
  readonly faults: readonly string[];
}

/** `entered`: of the ledger, read before. */
export async function readFanOuts(
  table: Table,
  companyId: number,
  entered: ReadonlyMap<string, FanOutEntry>,
  now: number,
): Promise<FanOuts> {
  const faults: string[] = [];
  const item = await table.get(fanOutKeys.progress(companyId));
  const progress = item === undefined ? undefined : StoredProgress.parse(item);
  const waiting = new Set<string>();
  let expanding = 0;
  for await (const row of table.query(fanOutKeys.waiting(companyId))) {
    const { eventId, createdAt, count, dueAt } = StoredFanOut.parse(row);
    const told = progress?.of === fanOutKeys.fanOut(companyId, createdAt, eventId).sk ? progress.told : 0;
    const isLate = [dueAt, progress?.movedAt].every((at) => at === undefined || now - Date.parse(at) > SWEPT_MS);
    if (isLate) faults.push(`event ${eventId}: nobody has made its deliveries for a quarter of an hour`);
    if (!entered.has(eventId)) faults.push(`event ${eventId}: is to be fanned out and not in the ledger`);
    waiting.add(eventId);
    expanding += count - told;
  }
  for (const { eventId, doneAt, expiresAt } of entered.values()) {
    if (doneAt !== undefined || waiting.has(eventId) || isOver(expiresAt, now)) continue;
    faults.push(`event ${eventId}: is in the ledger to be fanned out and has no row`);
  }
  return { expanding, faults };
}

/** Rows of data that were looked for, by event: whether they are there. */
export type KnownData = Map<string, boolean>;

/** Rows that one call reads. */
const TOGETHER = 25;

/** Deliveries whose event's data is gone: nothing can be sent of them. */
export async function dataFaults(
  table: Table,
  companyId: number,
  deliveries: Iterable<StoredDelivery>,
  known: KnownData,
): Promise<string[]> {
  const sharing = [...deliveries].filter(({ sharedData, state }) => sharedData === true && state !== "cancelled");
  const unknown = [...new Set(sharing.map(({ eventId }) => eventId))].filter((eventId) => !known.has(eventId));
  for (let first = 0; first < unknown.length; first += TOGETHER) {
    const some = unknown.slice(first, first + TOGETHER);
    const places = some.map((eventId) => fanOutKeys.eventData(companyId, eventId));
    const found = new Set((await table.batchGet(places, { fields: ["pk"] })).map(({ pk }) => pk));
    for (const [i, eventId] of some.entries()) known.set(eventId, found.has(places[i]?.pk));
  }
  return sharing
    .filter(({ eventId }) => known.get(eventId) === false)
    .map(({ id, state }) => `${id} (${state}): the data of its event is gone`);
}
