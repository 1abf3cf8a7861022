/** The list of expected deliveries. Reconciliation notices a delivery of the list that was never written. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { absent, type Item, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { expectedKeys } from "#shared/db/webhook-keys.ts";
import { Id } from "#shared/schema.ts";
import { DeliveryId, type StoredDelivery } from "#shared/webhooks/delivery.ts";

type Matched = Pick<StoredDelivery, "companyId" | "webhookId" | "id" | "eventId" | "createdAt" | "expiresAt">;

/**
 * Returns the writes that add deliveries to the list. Deliveries of one company that expire in the same second share an entry. An entry is
 * small, because the publisher makes at most `limits.directMatchesTogether` deliveries of a company at once. It is a set, so a batch may
 * name a delivery twice.
 */
export const expectedWrites = (deliveries: readonly Matched[]) =>
  [...Map.groupBy(deliveries, ({ companyId, expiresAt }) => `${companyId} ${expiresAt}`).values()].map(expectedWrite);

/** Returns the write of one entry of the list. Its key contains the event id of the first delivery. */
export function expectedWrite(deliveries: readonly Matched[]): Extract<Write, { update: unknown }> {
  const { companyId, eventId, createdAt, expiresAt } = at(deliveries, 0);
  const ids = new Set(deliveries.map(({ webhookId, id }) => `${webhookId} ${id}`));
  const change = { set: { type: "matched", companyId, expiresAt }, add: { deliveries: ids } };
  return { update: expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId), change };
}

/** Returns the entry of a manual delivery. It must not exist yet, because a manual delivery is made only once. */
export function expectedPut(delivery: Matched): { readonly put: Key & Item; readonly when: typeof absent } {
  const { companyId, webhookId, id, eventId, createdAt, expiresAt } = delivery;
  const entry = { type: "matched", companyId, expiresAt, deliveries: new Set([`${webhookId} ${id}`]) };
  return { put: { ...expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId), ...entry }, when: absent };
}

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
