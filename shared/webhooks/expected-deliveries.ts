/** The list of expected deliveries. Reconciliation notices a delivery of the list that was never written. */

import * as z from "zod/mini";
import type { Item, Write } from "#shared/db/expression.ts";
import { absent } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { expectedKeys } from "#shared/db/webhook-keys.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { DeliveryId, type StoredDelivery } from "#shared/webhooks/delivery.ts";

type Matched = Pick<StoredDelivery, "companyId" | "webhookId" | "id" | "eventId" | "createdAt" | "expiresAt">;

/** Maximum number of deliveries in one entry of the list. An entry is then at most about 20 KB large. */
const PER_ROW = 500;

/**
 * Returns the writes for deliveries of many events. Deliveries of one company that expire in the same second share an entry. A repeated
 * batch may name a delivery twice, which does no harm.
 */
export function expectedWrites(deliveries: readonly Matched[]): ReturnType<typeof expectedWrite>[] {
  const groups = Map.groupBy(deliveries, ({ companyId, expiresAt }) => `${companyId} ${expiresAt}`);
  return [...groups.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / PER_ROW) }, (_, i) => {
      const [first, ...more] = all.slice(i * PER_ROW, (i + 1) * PER_ROW);
      return first === undefined ? [] : [expectedWrite([first, ...more])];
    }).flat(),
  );
}

/** The key of the entry contains the id of the first delivery's event. */
export function expectedWrite([first, ...more]: readonly [Matched, ...Matched[]]): Extract<Write, { update: unknown }> {
  const { companyId, eventId, createdAt, expiresAt } = first;
  const ids = new Set([first, ...more].map(({ webhookId, id }) => `${webhookId} ${id}`));
  const change = { set: { type: "matched", companyId, expiresAt }, add: { deliveries: ids } };
  return { update: expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId), change };
}

/** Returns the entry of a manual delivery. It must not exist yet, because a manual delivery is made only once. */
export function expectedPut(delivery: Matched): { readonly put: Key & Item; readonly when: typeof absent } {
  const { companyId, webhookId, id, eventId, createdAt, expiresAt } = delivery;
  const entry = { type: "matched", companyId, expiresAt, deliveries: new Set([`${webhookId} ${id}`]) };
  return { put: { ...expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId), ...entry }, when: absent };
}

/** The entry of a fan-out. It is written before the row that contains the matches. Separate entries name the deliveries. */
export const ExpectedFanOut = z.object({
  type: z.literal("fanOut"),
  eventId: z.string(),
  createdAt: Timestamp,
  /** The number of matching subscriptions. */
  count: z.int(),
  doneAt: z.optional(Timestamp),
  expiresAt: z.int(),
});
export type ExpectedFanOut = z.infer<typeof ExpectedFanOut>;

export const ExpectedEntry = z.object({
  type: z.literal("matched"),
  deliveries: z.pipe(
    z.set(z.string()),
    z.transform((entries) =>
      [...entries].map((entry) => {
        const [webhookId, id] = entry.split(" ");
        return { webhookId: Id.parse(Number(webhookId)), id: DeliveryId.parse(id) };
      }),
    ),
  ),
  expiresAt: z.int(),
});
