/** Deliveries as the interface shows them: the log of a webhook, and one delivery with its body and attempts. */
import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Id, named, PageSize, Timestamp } from "#shared/schema.ts";
import { DeliveryId, DeliveryState, DeliveryTrigger } from "#shared/webhooks/delivery.ts";

const summary = {
  id: z.string(),
  webhookId: Id,
  registrationId: z.nullable(Id),
  event: z.string(),
  trigger: DeliveryTrigger,
  status: DeliveryState,
  /** Attempts made so far. */
  attemptCount: z.int(),
  /** Null unless it waits. */
  nextAttemptAt: z.nullable(Timestamp),
  /** What it waits for beyond the time it was due. */
  heldBy: z.nullable(z.enum(["pause", "breaker", "limit"])),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const Delivery = named("Delivery", z.object(summary), "One event on its way to one registration.");
export type Delivery = z.infer<typeof Delivery>;

export const Attempt = named(
  "Attempt",
  z.object({
    number: z.int(),
    startedAt: Timestamp,
    latencyMs: z.int(),
    status: z.nullable(z.int()),
    error: z.nullable(z.string()),
    answer: z.string(),
  }),
  "One try to deliver, and what the receiver answered.",
);

export const DeliveryDetail = named(
  "DeliveryDetail",
  z.object({ ...summary, body: z.string(), attempts: z.array(Attempt) }),
  "A delivery with the exact body that is signed and sent, and all its attempts, first to last.",
);
export type DeliveryDetail = z.infer<typeof DeliveryDetail>;

export const DeliveryPage = named(
  "DeliveryPage",
  z.object({ items: z.array(Delivery), nextCursor: z.nullable(z.string()) }),
  "A part of a webhook's deliveries, newest first. Without a `nextCursor` it is the last one.",
);
export type DeliveryPage = z.infer<typeof DeliveryPage>;

export const DeliveryQuery = z.object({
  status: z.optional(DeliveryState),
  event: z.optional(z.string().check(z.maxLength(limits.eventName))),
  cursor: z.optional(DeliveryId),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type DeliveryQuery = z.output<typeof DeliveryQuery>;

export const Queued = named("Queued", z.object({ deliveryId: z.string() }), "What was queued for delivery.");
export type Queued = z.infer<typeof Queued>;
