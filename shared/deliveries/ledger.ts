/**
 * Which deliveries had to be made of an event, written before they are: a delivery that is lost is missed here, whatever
 * became of its row. Repeating an event adds nothing.
 */

import * as z from "zod/mini";
import { absent } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { ledgerKeys } from "#shared/db/ledger-keys.ts";
import type { Item, Write } from "#shared/db/table.ts";
import { DeliveryId, type StoredDelivery } from "#shared/deliveries/schema.ts";
import { Id } from "#shared/schema.ts";

type Matched = Pick<StoredDelivery, "companyId" | "webhookId" | "id" | "eventId" | "createdAt" | "expiresAt">;

/** One write for all deliveries of an event. */
export function ledgerWrite([first, ...more]: readonly [Matched, ...Matched[]]): Extract<Write, { update: unknown }> {
  const { companyId, eventId, createdAt, expiresAt } = first;
  const ids = new Set([first, ...more].map(({ webhookId, id }) => `${webhookId} ${id}`));
  const change = { set: { type: "matched", companyId, expiresAt }, add: { deliveries: ids } };
  return { update: ledgerKeys.entry(companyId, createdAt.slice(0, 10), eventId), change };
}

/** Of a delivery that somebody makes by hand: nothing repeats its event, so the entry goes with it in one transaction. */
export function ledgerPut(delivery: Matched): { readonly put: Key & Item; readonly when: typeof absent } {
  const { companyId, webhookId, id, eventId, createdAt, expiresAt } = delivery;
  const entry = { type: "matched", companyId, expiresAt, deliveries: new Set([`${webhookId} ${id}`]) };
  return { put: { ...ledgerKeys.entry(companyId, createdAt.slice(0, 10), eventId), ...entry }, when: absent };
}

export const LedgerEntry = z.object({
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
