/** Rows of a company, for tests of the restore commands. */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { deliveryId, type StoredDelivery } from "#shared/webhooks/delivery.ts";

export const COMPANY = 128;
export const company = {
  ...keys.company(COMPANY),
  type: "company",
  id: COMPANY,
  name: "Acme",
  createdAt: iso(0),
  updatedAt: iso(0),
};

export function delivery(
  number: number,
  state: "waiting" | "delivered",
  more: Partial<StoredDelivery> = {},
): StoredDelivery {
  const createdAt = iso(Date.now() - 1_000);
  const id = deliveryId(`event-${number}`, 7, createdAt);
  return {
    type: "delivery",
    id,
    companyId: COMPANY,
    webhookId: 5,
    registrationId: 7,
    event: "prospect.created",
    eventId: `event-${number}`,
    trigger: "automatic",
    state,
    attempt: 1,
    planFrom: 1,
    dueAt: createdAt,
    ...(state === "waiting" && { dueShard: keys.dueShard(id) }),
    createdAt,
    updatedAt: createdAt,
    expiresAt: 4_000_000_000,
    ...more,
  };
}
