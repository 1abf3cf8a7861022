/**
 * Which deliveries had to be made of an event, written before they are: a delivery that is lost is missed here, whatever
 * became of its row. Repeating an event adds nothing.
 */

import * as z from "zod/mini";
import { ledgerKeys } from "#shared/db/expected-keys.ts";
import { absent } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import type { Key } from "#shared/db/keys.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { DeliveryId, type StoredDelivery } from "#shared/webhooks/delivery.ts";

type Matched = Pick<StoredDelivery, "companyId" | "webhookId" | "id" | "eventId" | "createdAt" | "expiresAt">;

/** Deliveries that one row names: so many are some 20 KB. */
const PER_ROW = 500;

/**
 * The writes for deliveries of many events: one for those of a company that are forgotten in the same second, whose rows and
 * entry so come to their end together. A batch that is repeated with other borders names some of them in two rows, which says
 * the same.
 */
export function ledgerWrites(deliveries: readonly Matched[]): ReturnType<typeof ledgerWrite>[] {
  const together = Map.groupBy(deliveries, ({ companyId, expiresAt }) => `${companyId} ${expiresAt}`);
  return [...together.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / PER_ROW) }, (_, i) => {
      const [first, ...more] = all.slice(i * PER_ROW, (i + 1) * PER_ROW);
      return first === undefined ? [] : [ledgerWrite([first, ...more])];
    }).flat(),
  );
}

/** One write for all of them, under the event of the first. */
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

/** Of an event with many deliveries: entered before the row from which they are made. The deliveries have entries of their own. */
export const FanOutEntry = z.object({
  type: z.literal("fanOut"),
  eventId: z.string(),
  createdAt: Timestamp,
  /** Matches. */
  count: z.int(),
  /** All of them are told. */
  doneAt: z.optional(Timestamp),
  expiresAt: z.int(),
});
export type FanOutEntry = z.infer<typeof FanOutEntry>;

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
