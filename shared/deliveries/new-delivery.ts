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

/** Kept for 30 days after it is due, or was made if it is due at once. */
export function newDelivery({ dueMs, triggeredBy, ...occasion }: Occasion, data: unknown): StoredDelivery {
  const { id, event, createdAt, companyId, webhookId, registrationId, trigger } = occasion;
  const envelope = { id, event, createdAt, companyId, webhookId, registrationId, trigger, triggeredBy };
  return {
    type: "delivery",
    ...occasion,
    state: "waiting",
    attempt: 1,
    planFrom: 1,
    dueAt: iso(dueMs),
    dueShard: keys.dueShard(id),
    body: JSON.stringify({ ...envelope, eventCount: 1, data }),
    updatedAt: createdAt,
    expiresAt: Math.floor((dueMs + limits.deliveryKeptMs) / 1_000),
  };
}
