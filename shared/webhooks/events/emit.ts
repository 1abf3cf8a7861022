/**
 * Matches of events and registrations -> deliveries, or events that join a window -> first messages. Repeated, it makes nothing twice and
 * queues again what has not been tried.
 */
import { allEnded, inTurn } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import { deliveryItem, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { tellInWindow, toldOtherwise, windowOf } from "#shared/webhooks/events/debounce.ts";
import { deliveryFor, type KeptEvent, type Wanting } from "#shared/webhooks/events/matching.ts";
import { ledgerWrites } from "#shared/webhooks/expected-deliveries.ts";
import { enqueue } from "#shared/webhooks/settle.ts";

/** An event and a registration that wants it. */
export interface Match {
  readonly event: KeptEvent;
  readonly registration: Wanting;
}

/** Reads and transactions on their way at once: more would only wait for a connection. */
const PARALLEL = 12;

/** `entry` names the entry of the ledger for matches of one event that are told in parts; else each event has its own. */
export async function tell(context: EventContext, matches: readonly Match[], entry?: string): Promise<void> {
  const isTold = await inTurn(matches, PARALLEL, (match) =>
    toldOtherwise(context.table, match.event, match.registration),
  );
  const untold = matches.filter((_, i) => isTold[i] === false);
  const isDelayed = ({ registration }: Match): boolean => registration.delayMinutes > 0;
  const waiting = [
    ...(await tellAtOnce(
      context,
      untold.filter((match) => !isDelayed(match)),
      entry,
    )),
    ...(await tellInWindows(context, untold.filter(isDelayed))),
  ];
  await enqueue(context, waiting);
}

/** Gives the deliveries that still need their first message: of one that was there before, none may have been sent. */
async function tellAtOnce(
  { table, timeScale }: EventContext,
  matches: readonly Match[],
  entry: string | undefined,
): Promise<StoredDelivery[]> {
  const made = new Map(
    matches.map(({ event, registration }) => {
      const delivery = deliveryFor(event, registration, timeScale);
      return [delivery.id, delivery] as const;
    }),
  );
  const deliveries = [...made.values()];
  const entered = deliveries.map((delivery) => ({ ...delivery, eventId: entry ?? delivery.eventId }));
  // Before the deliveries themselves: what is entered and not there has been lost. A window's is entered as it is opened.
  await allEnded(ledgerWrites(entered).map((write) => table.write(write)));
  const standing = await table.insert(deliveries.map((delivery) => ({ ...deliveryItem(delivery), id: delivery.id })));
  if (standing.length === 0) return deliveries;
  for (const { id } of standing) made.delete(id);
  const rows = (await table.batchGet(standing)).map((row) => StoredDelivery.parse(row));
  return [...made.values(), ...rows.filter(({ state, attempt }) => state === "waiting" && attempt === 1)];
}

/** Events of one window in their order, different windows at the same time. Gives likewise. */
async function tellInWindows({ table, timeScale }: EventContext, matches: readonly Match[]): Promise<StoredDelivery[]> {
  const windows = Map.groupBy(matches, ({ event, registration }) => windowOf(event, registration).sk);
  const opened = await inTurn([...windows.values()], PARALLEL, async (events) => {
    const deliveries: StoredDelivery[] = [];
    for (const { event, registration } of events) {
      const delivery = await tellInWindow(table, event, registration, timeScale);
      if (delivery !== undefined) deliveries.push(delivery);
    }
    return deliveries;
  });
  return opened.flat();
}
