/** A delivery as it is first written, and the body that it will have to its end. */

import type { UserSummary } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import { keys } from "#shared/db/keys.ts";
import { limits } from "#shared/limits.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";

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

/**
 * What every body says before it comes to what happened. Bodies of windows and of shared data are made of it at each attempt: whatever
 * it says of a delivery must stay the same for 30 days.
 */
export function envelope(
  { id, event, createdAt, companyId, webhookId, registrationId, trigger }: Omit<Occasion, "triggeredBy" | "dueMs">,
  triggeredBy: UserSummary | null,
  eventCount: number,
) {
  return { id, event, createdAt, companyId, webhookId, registrationId, trigger, triggeredBy, eventCount };
}

/** The body of a delivery of one event. `data` is JSON text: the same text gives the same bytes. */
export const bodyText = (
  occasion: Omit<Occasion, "triggeredBy" | "dueMs">,
  triggeredBy: UserSummary | null,
  data: string,
): string => `${JSON.stringify(envelope(occasion, triggeredBy, 1)).slice(0, -1)},"data":${data}}`;

export const newDelivery = (occasion: Occasion, data: string): StoredDelivery => ({
  ...withoutBody(occasion),
  body: bodyText(occasion, occasion.triggeredBy, data),
});

/** One of many of its event, or of an event with much data: it refers to the data and holds none. */
export const sharingDelivery = (occasion: Occasion): StoredDelivery => ({
  ...withoutBody(occasion),
  sharedData: true,
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
