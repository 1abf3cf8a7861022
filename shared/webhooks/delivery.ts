/** Deliveries as the table stores them. A delivery sends one event, or those of a debounce window, to one registration. */
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

export function deliveryIdIn(path: string): string {
  const parsed = DeliveryId.safeParse(path);
  if (!parsed.success) throw notFound("delivery");
  return parsed.data;
}

/** The id consists of the event's time and 80 bits of a digest. A repeated event gives the same id, so it makes no second delivery. */
export function deliveryId(eventId: string, registrationId: number, createdAt: string): string {
  const digest = createHash("sha256").update(`${registrationId}:${eventId}`).digest("hex").slice(0, 20);
  return `${idPrefix(createdAt)}${digest}`;
}

/** The prefix of all delivery ids of one millisecond: the time in base 36. Nine digits suffice until after the year 5000. */
export const idPrefix = (createdAt: string): string =>
  `dlv_${Math.max(0, Date.parse(createdAt)).toString(36).padStart(9, "0")}`;

/** The first byte of a compressed body. It says with which version of `DICTIONARY` the body is compressed. */
const PACKING_VERSION = 1;

/**
 * Strings that are frequent in bodies, the most frequent ones last, because deflate needs fewer bits for a near reference. Never change the
 * dictionary without a new `PACKING_VERSION`: a row is kept for 30 days.
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

/** The fastest level of deflate. With the dictionary, it makes a prospect event only 3 % larger than the slowest level does. */
const PACKING_LEVEL = 1;

export const packedBody = (body: string): Uint8Array =>
  Buffer.concat([Buffer.of(PACKING_VERSION), deflateRawSync(body, { dictionary: DICTIONARY, level: PACKING_LEVEL })]);

export function unpackedBody(stored: Uint8Array): string {
  if (stored[0] !== PACKING_VERSION) throw new Error("the packing of a delivery's body is not known");
  return inflateRawSync(stored.subarray(1), { dictionary: DICTIONARY }).toString("utf8");
}

export const Attempt = z.object({
  number: z.int(),
  startedAt: Timestamp,
  latencyMs: z.number(),
  status: z.nullable(z.int()),
  /** The reason why there was no answer. Null if there was one. */
  error: z.nullable(z.string()),
  answer: z.string(),
  /** True if the delivery was given up, because no request could be sent for `UNSENT_MS`. */
  isUnsent: z.optional(z.literal(true)),
});
export type Attempt = z.infer<typeof Attempt>;

export const StoredDelivery = z.object({
  type: z.literal("delivery"),
  id: z.string(),
  companyId: Id,
  webhookId: Id,
  /** Null for a test delivery of an event that no registration of the webhook names. */
  registrationId: z.nullable(Id),
  event: z.string(),
  eventId: z.string(),
  trigger: z._default(DeliveryTrigger, "automatic"),
  state: DeliveryState,
  /** True for the event of a single record that a bulk job has changed. Such deliveries have their own message group and backlogs. */
  isBulk: z.optional(z.literal(true)),
  /** The number that the next attempt gets, counted from 1. */
  attempt: z.int(),
  /** The number of the first attempt in the current retry plan. It is above 1 only after a redelivery or replay of an ended delivery. */
  planFrom: z.int(),
  dueAt: Timestamp,
  /** The partition of the due index in which the delivery waits. Absent if it does not wait. */
  dueShard: z.optional(z.string()),
  /** The first successful attempts with short answers. Every other attempt has a separate row. */
  successes: z.optional(z.array(Attempt)),
  replayId: z.optional(z.string()),
  /** The last time at which the sweeper sent a new message for this delivery. */
  sweptAt: z.optional(Timestamp),
  /** Absent if each attempt makes the body from other rows (events/debounce.ts). */
  body: z.optional(z.pipe(Bytes, z.transform(unpackedBody))),
  /** True if the data of the event is in a separate row, because the event has many deliveries or much data. */
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

/** Two attempts may have the same number, because a killed sender's attempt is made again. Then returns the one in `successes`, if any. */
export const attemptsOf = ({ successes = [] }: StoredDelivery, rows: readonly StoredAttempt[]): Attempt[] =>
  [...new Map([...rows, ...successes].map((attempt) => [attempt.number, attempt])).values()].sort(
    (a, b) => a.number - b.number,
  );

/** Returns the state that the API shows. Waiting deliveries of a deleted registration are cancelled, even before their rows change. */
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
  readonly triggeredBy: UserSummary | null;
}

type Described = Omit<NewDelivery, "triggeredBy" | "dueMs">;

/** Do not change the names or order of these fields: some bodies are made anew for each attempt, and all attempts must send equal bytes. */
export function envelope(
  { id, event, createdAt, companyId, webhookId, registrationId, trigger }: Described,
  triggeredBy: UserSummary | null,
  eventCount: number,
) {
  return { id, event, createdAt, companyId, webhookId, registrationId, trigger, triggeredBy, eventCount };
}

interface TestMark {
  readonly test: true;
}

/** Returns the body of a delivery of one event. `data` is JSON text, inserted unchanged so that every attempt sends the same bytes. */
export const bodyText = (
  described: Described,
  triggeredBy: UserSummary | null,
  data: string,
  mark?: TestMark,
): string => `${JSON.stringify({ ...envelope(described, triggeredBy, 1), ...mark }).slice(0, -1)},"data":${data}}`;

export const newDelivery = (input: NewDelivery, data: string, mark?: TestMark): StoredDelivery => ({
  ...deliveryWithoutBody(input),
  body: bodyText(input, input.triggeredBy, data, mark),
});

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

/** Yields the deliveries of a webhook from several partitions, sorted by id and without attempts. */
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
