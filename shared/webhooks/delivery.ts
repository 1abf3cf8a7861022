/**
 * Deliveries as the table stores them. A delivery sends one event, or the events of a debounce window, to one registration of a webhook.
 */
import { createHash } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import * as z from "zod/mini";
import type { UserSummary } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { DELIVERY_SHARDS, type Key } from "#shared/db/keys.ts";
import type { QuerySpec, Reads } from "#shared/db/reads.ts";
import { notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Bytes, Id, Timestamp } from "#shared/schema.ts";

export const DeliveryState = z.enum(["waiting", "delivered", "exhausted", "cancelled"]);

export const DeliveryTrigger = z.enum(["automatic", "manual"]);

/** The id of a delivery. If ids are sorted as text, they are sorted by `createdAt`. */
export const DeliveryId = z.string().check(z.regex(/^dlv_[0-9a-z]{29}$/, "must be a delivery id"));

/**
 * Returns the delivery id in a path. Throws `not_found` if it does not have the form of a delivery id, because no such delivery can
 * exist.
 */
export function deliveryIdIn(path: string): string {
  const parsed = DeliveryId.safeParse(path);
  if (!parsed.success) throw notFound("delivery");
  return parsed.data;
}

/**
 * Returns the id for the delivery of an event to a registration. It consists of the event's time and 80 bits of a digest. The same event
 * and registration always give the same id, so that an event that is published twice makes no second delivery.
 */
export function deliveryId(eventId: string, registrationId: number, createdAt: string): string {
  const digest = createHash("sha256").update(`${registrationId}:${eventId}`).digest("hex").slice(0, 20);
  return `${idPrefix(createdAt)}${digest}`;
}

/**
 * Returns the text with which the ids of all deliveries of one millisecond begin: the milliseconds since 1970 in base 36 with nine digits,
 * which are enough until after the year 5000. As text, it sorts before the ids of this millisecond and of later ones.
 */
export const idPrefix = (createdAt: string): string =>
  `dlv_${Math.max(0, Date.parse(createdAt)).toString(36).padStart(9, "0")}`;

/** The first byte of a compressed body. It tells which compression dictionary is needed for decompression. */
const PACKING_VERSION = 1;

/**
 * The dictionary with which deflate compresses bodies. It contains strings that are frequent in bodies, the most frequent ones last,
 * because deflate stores a reference to a near string in fewer bits. A stored row lives for 30 days and can be decompressed only with the
 * dictionary that compressed it. Never change the dictionary without a new `PACKING_VERSION`.
 */
const DICTIONARY = Buffer.from(
  '{"territory":{"name":"polygon":[[totalProperties"assignedToUserId":"location":"allDay":false,"startAt":"endAt":"title":' +
    '"appointment":{"prospectId":"note":{"body":"changedFields":["previousAssignee":"newAssignee":"statusHistoryId":' +
    '"previousStatus":{"newStatus":{"changedBy":{"id":csv-import"customFieldData":{"tags":[{"tag":{"id":"value":"color":"#' +
    '"eventCount":1,"data":{"prospect":{"id":,"trigger":"manual","triggeredBy":{"id":' +
    '"appointments":[{"status":"scheduled","event":"prospect.deleted","event":"prospect.assigned","event":"prospect.updated",' +
    '"event":"prospect.status_changed","event":"prospect.created","firstName":"lastName":"email":"' +
    '"assignedTo":{"id":"address":{"id":"address1":"address2":null,"city":"state":"zip":"formattedAddress":"' +
    '"currentStatus":{"id":"value":"Not Interested","color":"#"secondaryPhoneNumber":null,"emailAddress":null,"lat":39.,"lng":-104.' +
    '{"id":"dlv_0m","event":"prospect.created","createdAt":"2026-Z","companyId":,"webhookId":,"registrationId":,"trigger":"automatic",' +
    '"triggeredBy":null,"eventCount":1,"data":{"prospect":{"id":,"name":"","phoneNumber":"","secondaryPhoneNumber":null,' +
    '"emailAddress":null,"lat":,"lng":,"source":"api","customFieldData":null,"createdAt":"2026-Z","updatedAt":"2026-","address":null,' +
    '"currentStatus":null,"assignedTo":null,"tags":[],"appointments":[]}}}',
);

/** The fastest compression level. With the dictionary, a compressed prospect event is only 3 % larger than at the slowest level. */
const PACKING_LEVEL = 1;

/** Compresses a body, so that writing a delivery usually costs only one write unit. */
export const packedBody = (body: string): Uint8Array =>
  Buffer.concat([Buffer.of(PACKING_VERSION), deflateRawSync(body, { dictionary: DICTIONARY, level: PACKING_LEVEL })]);

/** Decompresses a stored body. A body that was stored as text is returned unchanged. Throws if the version of the dictionary is unknown. */
export function unpackedBody(stored: string | Uint8Array): string {
  if (typeof stored === "string") return stored;
  if (stored[0] !== PACKING_VERSION) throw new Error("the packing of a delivery's body is not known");
  return inflateRawSync(stored.subarray(1), { dictionary: DICTIONARY }).toString("utf8");
}

export const Attempt = z.object({
  number: z.int(),
  startedAt: Timestamp,
  latencyMs: z.number(),
  status: z.nullable(z.int()),
  /** The reason why there was no answer. Null if there was an answer. */
  error: z.nullable(z.string()),
  answer: z.string(),
  /**
   * True if the service gave up the delivery after this attempt, because no request of the delivery could be sent for `UNSENT_MS` (the
   * duration of a whole retry plan).
   */
  isUnsent: z.optional(z.literal(true)),
});
export type Attempt = z.infer<typeof Attempt>;

export const StoredDelivery = z.object({
  type: z.literal("delivery"),
  id: z.string(),
  companyId: Id,
  webhookId: Id,
  /** The registration for which the delivery was made. Null for a test delivery. */
  registrationId: z.nullable(Id),
  event: z.string(),
  eventId: z.string(),
  trigger: z._default(DeliveryTrigger, "automatic"),
  state: DeliveryState,
  /**
   * True if the delivery sends the event of a single record that a bulk job has changed. Such deliveries have their own message group in
   * SQS and their own backlogs, so that they do not delay other deliveries.
   */
  isBulk: z.optional(z.literal(true)),
  /** The number that the next attempt gets, counted from 1. */
  attempt: z.int(),
  /**
   * The number of the first attempt in the current retry plan. It is above 1 only if the delivery was sent again (redelivery or replay)
   * after its previous plan had ended.
   */
  planFrom: z.int(),
  dueAt: Timestamp,
  /**
   * The partition of the due index (a secondary index by due time) in which a waiting delivery is. Absent if the delivery does not wait.
   */
  dueShard: z.optional(z.string()),
  /** The first successful attempts with short answers. Every other attempt has a separate row. */
  successes: z.optional(z.array(Attempt)),
  /** The id of the last replay that sent the delivery again. */
  replayId: z.optional(z.string()),
  /** The last time at which the sweeper (a function that runs every minute) sent a new message for this delivery. */
  sweptAt: z.optional(Timestamp),
  /** The body that every attempt signs and sends. It is absent if each attempt makes the body from other rows. */
  body: z.optional(z.pipe(z.union([z.string(), Bytes]), z.transform(unpackedBody))),
  /** True if the body is made from the event's data, which has a separate row. */
  sharedData: z.optional(z.literal(true)),
  /** The id of the record whose events the delivery collects. Only a delivery with a debounce window has it. */
  recordId: z.optional(Id),
  /** The number of events in the delivery and the range of their record versions. They are stored when the debounce window closes. */
  closed: z.optional(z.object({ eventCount: z.int(), fromVersion: z.int(), toVersion: z.int() })),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** The time at which DynamoDB's TTL deletes the row, in seconds since 1970. */
  expiresAt: z.int(),
});
export type StoredDelivery = z.infer<typeof StoredDelivery>;

export const deliveryItem = (delivery: StoredDelivery): Key & Record<string, unknown> => {
  const { companyId, webhookId, id, body } = delivery;
  const row = { ...keys.delivery(companyId, webhookId, id), ...delivery };
  return body === undefined ? row : { ...row, body: packedBody(body) };
};

export const StoredAttempt = z.extend(Attempt, { type: z.literal("attempt"), expiresAt: z.int() });
export type StoredAttempt = z.infer<typeof StoredAttempt>;

/**
 * Returns all attempts of a delivery, sorted by number. If a sender is killed after an attempt, another sender makes this attempt again, so
 * two records may have the same number. Then the result contains only one of them: a success in `successes`, if there is one.
 */
export const attemptsOf = ({ successes = [] }: StoredDelivery, rows: readonly StoredAttempt[]): Attempt[] =>
  [...new Map([...rows, ...successes].map((attempt) => [attempt.number, attempt])).values()].sort(
    (a, b) => a.number - b.number,
  );

/**
 * Returns the state that the API shows. If a registration was deleted, its waiting deliveries are shown as cancelled. The row of such a
 * delivery changes only later, when its queue message arrives or its backlog is handled.
 */
export const effectiveState = (
  { state }: Pick<StoredDelivery, "state">,
  isRegistered: boolean,
): StoredDelivery["state"] => (state === "waiting" && !isRegistered ? "cancelled" : state);

export interface NewDelivery
  extends Pick<
    StoredDelivery,
    "id" | "companyId" | "webhookId" | "registrationId" | "event" | "eventId" | "createdAt" | "trigger" | "isBulk"
  > {
  readonly dueMs: number;
  /** The user who triggered a manual delivery. Null for other deliveries. */
  readonly triggeredBy: UserSummary | null;
}

type Described = Omit<NewDelivery, "triggeredBy" | "dueMs">;

/**
 * Returns the fields of a body that come before `data`. Every attempt of a delivery must send the same bytes, but some bodies are made anew
 * for each attempt. Do not change the names or the order of these fields: a delivery whose first attempt is made before the release of such
 * a change, and the second one after it, would send different bytes.
 */
export function envelope(
  { id, event, createdAt, companyId, webhookId, registrationId, trigger }: Described,
  triggeredBy: UserSummary | null,
  eventCount: number,
) {
  return { id, event, createdAt, companyId, webhookId, registrationId, trigger, triggeredBy, eventCount };
}

/**
 * Returns the body of a delivery of one event. `data` is the event's data as JSON text. It is inserted unchanged, so that every attempt
 * sends the same bytes.
 */
export const bodyText = (described: Described, triggeredBy: UserSummary | null, data: string): string =>
  `${JSON.stringify(envelope(described, triggeredBy, 1)).slice(0, -1)},"data":${data}}`;

export const newDelivery = (input: NewDelivery, data: string): StoredDelivery => ({
  ...deliveryWithoutBody(input),
  body: bodyText(input, input.triggeredBy, data),
});

/** Returns a delivery whose body is made from the event's data in a separate row. Use it for an event with many deliveries or much data. */
export const deliveryWithSharedData = (input: NewDelivery): StoredDelivery => ({
  ...deliveryWithoutBody(input),
  sharedData: true,
});

/** Returns a delivery without a body. It expires 30 days after its due time. */
export function deliveryWithoutBody({ dueMs, triggeredBy: _, ...described }: NewDelivery): StoredDelivery {
  return {
    type: "delivery",
    ...described,
    state: "waiting",
    attempt: 1,
    planFrom: 1,
    dueAt: iso(dueMs),
    dueShard: keys.dueShard(described.id),
    updatedAt: described.createdAt,
    expiresAt: Math.floor((dueMs + limits.deliveryKeptMs) / 1_000),
  };
}

type Range = Pick<QuerySpec, "from" | "upTo" | "newestFirst" | "pageItems">;

/** Yields the deliveries of a webhook, sorted by id and without attempts. They are read from several partitions and merged. */
export async function* readDeliveries(
  table: Reads,
  { companyId, webhookId }: Pick<StoredDelivery, "companyId" | "webhookId">,
  range: Range,
): AsyncGenerator<StoredDelivery, void, undefined> {
  const shards = Array.from({ length: DELIVERY_SHARDS }, (_, shard) =>
    deliveriesIn(table.query({ ...keys.deliveryShard(companyId, webhookId, shard), ...range })),
  );
  const heads = await Promise.all(shards.map((shard) => shard.next()));
  const isBefore = (a: string, b: string): boolean => (range.newestFirst === true ? a > b : a < b);
  for (;;) {
    let first = -1;
    for (const [i, head] of heads.entries()) {
      const best = heads[first];
      if (head.done !== true && (best === undefined || best.done === true || isBefore(head.value.id, best.value.id)))
        first = i;
    }
    const [head, shard] = [heads[first], shards[first]];
    if (head === undefined || shard === undefined || head.done === true) return;
    yield head.value;
    heads[first] = await shard.next();
  }
}

async function* deliveriesIn(items: AsyncIterable<Item>): AsyncGenerator<StoredDelivery, undefined, undefined> {
  for await (const item of items) if (item.type === "delivery") yield StoredDelivery.parse(item);
}
