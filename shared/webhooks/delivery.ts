/** Deliveries: one event on its way to one registration, as the table holds it; its attempts; its queue message. */
import * as z from "zod/mini";
import { type Key, keys } from "#shared/db/keys.ts";
import { notFound } from "#shared/errors.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { packedBody, unpackedBody } from "#shared/webhooks/delivery-body.ts";

export const DeliveryState = z.enum(["waiting", "delivered", "exhausted", "cancelled"]);

/** `manual`: somebody pressed a button. */
export const DeliveryTrigger = z.enum(["automatic", "manual"]);

/** Sorts by time. */
export const DeliveryId = z.string().check(z.regex(/^dlv_[0-9a-z]{29}$/, "must be a delivery id"));

/** The id of a delivery in a path. Throws not_found for any other text: it names no delivery. */
export function deliveryIdIn(path: string): string {
  const parsed = DeliveryId.safeParse(path);
  if (!parsed.success) throw notFound("delivery");
  return parsed.data;
}

/** Text, or as `deliveryItem` packs it. */
const Body = z.pipe(
  z.union([z.string(), z.custom<Uint8Array>((value) => value instanceof Uint8Array)]),
  z.transform(unpackedBody),
);

/** What came of an attempt. */
export const Attempt = z.object({
  number: z.int(),
  startedAt: Timestamp,
  latencyMs: z.number(),
  /** Status of the answer, or null when there was none. */
  status: z.nullable(z.int()),
  /** Why there was no answer. */
  error: z.nullable(z.string()),
  /** Beginning of the answer's body. */
  answer: z.string(),
  /** It could not leave us for as long as the whole plan takes, and the delivery was given up. */
  isUnsent: z.optional(z.literal(true)),
});
export type Attempt = z.infer<typeof Attempt>;

export const StoredDelivery = z.object({
  type: z.literal("delivery"),
  id: z.string(),
  companyId: Id,
  webhookId: Id,
  /** Null where nobody registered for it: a test. */
  registrationId: z.nullable(Id),
  event: z.string(),
  eventId: z.string(),
  trigger: z._default(DeliveryTrigger, "automatic"),
  state: DeliveryState,
  /** Number of the attempt that comes next, from 1. */
  attempt: z.int(),
  /** Number of the attempt that the plan of retries begins with: 1, or a later one where it was sent again by hand. */
  planFrom: z.int(),
  /** When the next attempt is due. */
  dueAt: Timestamp,
  /** Partition of the due index; only while the delivery waits. */
  dueShard: z.optional(z.string()),
  /** Attempts that delivered it, more than one where it was sent again, and were answered in few words: these have no row. */
  successes: z.optional(z.array(Attempt)),
  /** The last replay that took it. */
  replayId: z.optional(z.string()),
  /** When the sweeper last put a message into the queue again. */
  sweptAt: z.optional(Timestamp),
  /** The bytes that are signed and sent, the same at every attempt. Those of a window are made of its events. */
  body: z.optional(Body),
  /** The body is made of the data of its event, which has a row of its own. */
  sharedData: z.optional(z.literal(true)),
  /** Of a window: the record that its events are about. */
  recordId: z.optional(Id),
  /** Of a window that nothing joins any more: how many events it has, and between which versions of the record they are. */
  closed: z.optional(z.object({ eventCount: z.int(), fromVersion: z.int(), toVersion: z.int() })),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** Seconds since the epoch: the table's own clean-up. */
  expiresAt: z.int(),
});
export type StoredDelivery = z.infer<typeof StoredDelivery>;

/** The row of a delivery, with its body packed. */
export const deliveryItem = (delivery: StoredDelivery): Key & Record<string, unknown> => {
  const { companyId, webhookId, id, body } = delivery;
  const row = { ...keys.delivery(companyId, webhookId, id), ...delivery };
  return body === undefined ? row : { ...row, body: packedBody(body) };
};

export const StoredAttempt = z.extend(Attempt, { type: z.literal("attempt"), expiresAt: z.int() });
export type StoredAttempt = z.infer<typeof StoredAttempt>;

/** All of a delivery, in their order. Of one that was made twice, since its first sender died, the success counts. */
export const attemptsOf = ({ successes = [] }: StoredDelivery, rows: readonly StoredAttempt[]): Attempt[] =>
  [...new Map([...rows, ...successes].map((attempt) => [attempt.number, attempt])).values()].sort(
    (a, b) => a.number - b.number,
  );

/** What travels through the queue: where the delivery stands and which attempt is meant. Never the body. */
export const DeliveryMessage = z.object({
  v: z.literal(1),
  companyId: Id,
  webhookId: Id,
  deliveryId: DeliveryId,
  attempt: z.int().check(z.minimum(1)),
});
export type DeliveryMessage = z.infer<typeof DeliveryMessage>;

/** Goes on sending what a webhook kept while it was paused. */
export const ReleaseMessage = z.object({ v: z.literal(1), release: z.literal(true), companyId: Id, webhookId: Id });
export type ReleaseMessage = z.infer<typeof ReleaseMessage>;

/** Looks after what waits at the gate of a webhook. */
export const LookMessage = z.object({ v: z.literal(1), look: z.literal(true), companyId: Id, webhookId: Id });
export type LookMessage = z.infer<typeof LookMessage>;

/** Goes on with a replay. */
export const ReplayMessage = z.object({ v: z.literal(1), replay: z.literal(true), companyId: Id, webhookId: Id });
export type ReplayMessage = z.infer<typeof ReplayMessage>;

/** Goes on making the deliveries of a company's events that have many. */
export const FanOutMessage = z.object({ v: z.literal(1), fanOut: z.literal(true), companyId: Id });
export type FanOutMessage = z.infer<typeof FanOutMessage>;

export type QueueMessage = DeliveryMessage | ReleaseMessage | ReplayMessage | LookMessage | FanOutMessage;

export const fanOutMessage = (companyId: number): FanOutMessage => ({ v: 1, fanOut: true, companyId });

export const messageFor = ({ companyId, webhookId, id, attempt }: StoredDelivery): DeliveryMessage => ({
  v: 1,
  companyId,
  webhookId,
  deliveryId: id,
  attempt,
});
