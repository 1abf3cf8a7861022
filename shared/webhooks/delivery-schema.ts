/** The schemas of deliveries as the API shows them. */
import * as z from "zod/mini";
import { explain, pageSizeText, pageTexts } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { cursorPage, Id, named, PageSize, Timestamp } from "#shared/schema.ts";
import { DeliveryId, DeliveryState, DeliveryTrigger } from "#shared/webhooks/delivery.ts";

const summary = {
  id: z.string(),
  webhookId: Id,
  registrationId: z.nullable(Id),
  event: z.string(),
  trigger: DeliveryTrigger,
  status: DeliveryState,
  attemptCount: z.int(),
  nextAttemptAt: z.nullable(Timestamp),
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
  "One attempt to deliver, with the receiver's answer.",
);

/* @__PURE__ */ explain([Attempt], () => ({
  fields: {
    number: "From 1.",
    startedAt: "UTC, with milliseconds.",
    latencyMs: "Milliseconds of the whole exchange.",
    status: "HTTP status of the answer; null if there was none.",
    error: "Why there was no answer.",
    answer: "The beginning of the answer's body, at most 4 KB.",
  },
}));

export const DeliveryDetail = named(
  "DeliveryDetail",
  z.object({ ...summary, body: z.string(), attempts: z.array(Attempt) }),
  "A delivery with the exact body that is signed and sent, and all its attempts, first to last.",
);
export type DeliveryDetail = z.infer<typeof DeliveryDetail>;

/* @__PURE__ */ explain([Delivery, DeliveryDetail], () => ({
  fields: {
    registrationId: "Null for a test delivery of an event that no registration of the webhook names.",
    event: "Name of the event, such as `prospect.status_changed`.",
    trigger: "`manual` if a user pressed a button.",
    status:
      "`waiting`; `delivered`; `exhausted` if no attempt is left, or if no request could leave the service in the time of all attempts; or `cancelled`.",
    attemptCount: "The number of attempts so far.",
    nextAttemptAt: "When the next attempt is due; null unless the delivery waits.",
    heldBy:
      "Why a due delivery waits. `pause`: the webhook is paused. `breaker`: its receiver has failed five times in a row, and the next try is at `nextAttemptAt`. `limit`: the webhook has as many deliveries in flight as it may have, or no request for it can leave the service at the moment, for example because no name server answers for its host. The wait uses up no attempt. Otherwise null.",
    body: "The bytes that the service signs and sends, the same at every attempt.",
    attempts: "First to last.",
  },
}));

export const DeliveryPage = cursorPage(
  "DeliveryPage",
  Delivery,
  "A page of a webhook's deliveries, newest first. On the last page `nextCursor` is null.",
);
export type DeliveryPage = z.infer<typeof DeliveryPage>;

/* @__PURE__ */ explain([DeliveryPage], () => pageTexts());

export const DeliveryQuery = z.object({
  status: z.optional(DeliveryState),
  event: z.optional(z.string().check(z.maxLength(limits.eventName))),
  cursor: z.optional(DeliveryId),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type DeliveryQuery = z.output<typeof DeliveryQuery>;

/* @__PURE__ */ explain([DeliveryQuery], () => ({
  fields: {
    status: { description: "Only deliveries in this state.", example: "exhausted" },
    event: { description: "Only deliveries of this event.", example: "prospect.status_changed" },
    cursor: { description: "`nextCursor` of the previous page.", example: "dlv_0mb6x3k2a1f4c9d07b35e8a61c204" },
    limit: pageSizeText(),
  },
}));

export const Queued = named("Queued", z.object({ deliveryId: z.string() }), "The delivery that was queued.");
export type Queued = z.infer<typeof Queued>;

/* @__PURE__ */ explain([Queued], () => ({
  fields: { deliveryId: "Id of the delivery. Receivers find it in `X-Service-Delivery` and `webhook-id`." },
}));
