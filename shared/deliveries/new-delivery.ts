/** A delivery as it is first written, and the body that it will have to its end. */
import { iso } from "#shared/clock.ts";
import { keys } from "#shared/db/keys.ts";
import type { StoredDelivery } from "#shared/deliveries/schema.ts";
import { limits } from "#shared/limits.ts";
import type { UserSummary } from "#shared/users/schema.ts";

/** What a delivery is about: which event, for whom, when, and by whom. */
export interface Occasion
  extends Pick<
    StoredDelivery,
    "id" | "companyId" | "webhookId" | "registrationId" | "event" | "eventId" | "createdAt" | "trigger"
  > {
  readonly dueMs: number;
  /** Who pressed the button. */
  readonly triggeredBy: UserSummary | null;
}

/** What every body says before it comes to what happened. */
export function envelope(
  { id, event, createdAt, companyId, webhookId, registrationId, trigger }: Omit<Occasion, "triggeredBy" | "dueMs">,
  triggeredBy: UserSummary | null,
  eventCount: number,
) {
  return { id, event, createdAt, companyId, webhookId, registrationId, trigger, triggeredBy, eventCount };
}

export const newDelivery = (occasion: Occasion, data: unknown): StoredDelivery => ({
  ...withoutBody(occasion),
  body: JSON.stringify({ ...envelope(occasion, occasion.triggeredBy, 1), data }),
});

/** Kept for 30 days after it is due. */
export function withoutBody({ dueMs, triggeredBy: _, ...occasion }: Occasion): StoredDelivery {
  return {
    type: "delivery",
    ...occasion,
    state: "waiting",
    attempt: 1,
    planFrom: 1,
    dueAt: iso(dueMs),
    dueShard: keys.dueShard(occasion.id),
    updatedAt: occasion.createdAt,
    expiresAt: Math.floor((dueMs + limits.deliveryKeptMs) / 1_000),
  };
}
