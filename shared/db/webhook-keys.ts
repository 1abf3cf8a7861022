/** The keys of the rows for webhook deliveries, and of the data keys that encrypt a company's secrets. */
import { type Key, padded, shardOf } from "#shared/db/keys.ts";

export const limiterKeys = {
  /** The row of a webhook's concurrency limiter: its deliveries in flight, and the state of its circuit breaker. */
  limiter: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#G`, sk: "GATE" }),
  /** Returns the webhook to which the row of a concurrency limiter belongs. Returns undefined for any other row. */
  limiterAt: ({ pk }: Key): { companyId: number; id: number } | undefined => {
    const [, companyId, id] = /^C#(\d+)#D#(\d+)#G$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
} as const;

/**
 * A record and a registration (subscription of a webhook) that receives its events. Each such pair has its own debounce windows, in which
 * events are collected.
 */
export interface RegisteredRecord {
  readonly companyId: number;
  readonly webhookId: number;
  readonly registrationId: number;
  readonly recordId: number;
}

const debouncePartition = (companyId: number, webhookId: number, shard: number): string =>
  `C#${companyId}#D#${webhookId}#R${shard}`;
const debounceKey = (kind: string, { companyId, webhookId, registrationId, recordId }: RegisteredRecord): Key => ({
  pk: debouncePartition(companyId, webhookId, shardOf(`${registrationId}#${recordId}`)),
  sk: `${kind}#${padded(registrationId)}#${padded(recordId)}`,
});

export const debounceKeys = {
  /**
   * The open debounce window of a record. A registration (subscription of a webhook) with a delay collects the events of a record in a
   * window, and sends them as one delivery. The row contains the id of this delivery. If the row does not exist, the next event opens a
   * window.
   */
  window: (record: RegisteredRecord): Key => debounceKey("W", record),
  /** An event in a debounce window. If the same event is published again, it has the same key and is stored only once. */
  event: (record: RegisteredRecord, version: number, event: string): Key => {
    const { pk, sk } = debounceKey("V", record);
    return { pk, sk: `${sk}#${padded(version)}#${event}` };
  },
  /** The events of the record from version `from` to version `to`, both included, sorted by version. */
  events: (record: RegisteredRecord, from: number, to: number) => {
    const { pk, sk } = debounceKey("V", record);
    // `$` sorts directly after `#`, so the range includes every event of the version `to`.
    return { pk, from: `${sk}#${padded(from)}`, upTo: `${sk}#${padded(to)}$` };
  },
  /** All rows of one partition of a webhook: debounce windows with their events, and manual triggers. */
  shard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: debouncePartition(companyId, webhookId, shard),
  }),
  /** The last manual trigger for a record: the time at which a user requested a delivery, and the id of this delivery. */
  manualTrigger: (record: RegisteredRecord): Key => debounceKey("M", record),
} as const;

/**
 * One of the two sequences (lanes) of a company's fan-outs. A fan-out is one or several events whose deliveries are created later. Only one
 * function at a time works on a lane, and it begins with the oldest fan-out. The events of bulk jobs have a separate lane, so that they do
 * not delay the company's other events.
 */
export interface FanOutLane {
  readonly companyId: number;
  readonly isBulk?: true | undefined;
}

const fanOutPartition = ({ companyId, isBulk }: FanOutLane): string => `C#${companyId}#D#F${isBulk ? "B" : ""}`;

/**
 * Keys of fan-outs. A fan-out is either an event that matches many subscriptions, or several events of a bulk job. Its row is stored first,
 * and the deliver function creates its deliveries later.
 */
export const fanOutKeys = {
  /** The fan-outs whose deliveries are not all created yet, the oldest first. */
  waiting: (lane: FanOutLane): { pk: string; begins: string } => ({ pk: fanOutPartition(lane), begins: "E#" }),
  fanOut: (lane: FanOutLane, createdAt: string, eventId: string): Key => ({
    pk: fanOutPartition(lane),
    sk: `E#${createdAt}#${eventId}`,
  }),
  /**
   * The progress of a lane (a sequence of fan-outs): which function works on it, and how many deliveries of its oldest fan-out already
   * exist.
   */
  progress: (lane: FanOutLane): Key => ({ pk: fanOutPartition(lane), sk: "PROGRESS" }),
  /** Returns the lane to which a fan-out's row belongs. Returns undefined for any other row. */
  laneAt: ({ pk, sk }: Key): FanOutLane | undefined => {
    const [, companyId, bulk] = /^C#(\d+)#D#F(B?)$/.exec(pk) ?? [];
    if (companyId === undefined || !sk.startsWith("E#")) return undefined;
    return { companyId: Number(companyId), ...(bulk === "B" && { isBulk: true }) };
  },
  /** The data of an event, if it is too large to be stored in each delivery of the event. */
  eventData: (companyId: number, eventId: string): Key => ({ pk: `C#${companyId}#D#E#${eventId}`, sk: "DATA" }),
} as const;

const dayPartition = (companyId: number, day: string): string => `C#${companyId}#D#L#${day}`;

/** Keys of the list of expected deliveries. Reconciliation compares this list with the deliveries that exist. */
export const expectedKeys = {
  /** An entry of the list: the deliveries that an event must have. Each day (UTC) has a separate partition. */
  entry: (companyId: number, day: string, eventId: string): Key => ({
    pk: dayPartition(companyId, day),
    sk: `E#${eventId}`,
  }),
  /**
   * The entry of a fan-out (one or several events whose deliveries are created later) in the list of expected deliveries. It says whether
   * all deliveries are created. It is in the partition of the event's day.
   */
  fanOut: (companyId: number, day: string, eventId: string): Key => ({
    pk: dayPartition(companyId, day),
    sk: `F#${eventId}`,
  }),
  day: (companyId: number, day: string): { pk: string } => ({ pk: dayPartition(companyId, day) }),
} as const;

export const replayKeys = {
  /** The state of the current or last replay of a webhook. A replay sends the deliveries of a time range again. */
  replay: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#REPLAY`, sk: "REPLAY" }),
  /** Returns the webhook to which a replay's row belongs. Returns undefined for any other row. */
  replayAt: ({ pk }: Key): { companyId: number; webhookId: number } | undefined => {
    const [, companyId, webhookId] = /^C#(\d+)#D#(\d+)#REPLAY$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), webhookId: Number(webhookId) };
  },
  /**
   * Returns a range of sort keys of deliveries. `first` and `last` are ids or beginnings of ids. The range starts at the first id that
   * begins with `first`, and ends after the last id that begins with `last`. If `after` is set, the range starts after the rows of this
   * delivery and of its attempts.
   */
  between: (after: string | undefined, first: string, last: string) => ({
    from: after === undefined ? `D#${first}` : `D#${after}#~`,
    upTo: `D#${last}~`,
  }),
} as const;

/** The `type` attribute of the rows of `secretKeys`. */
export const DATA_KEY_TYPE = "data-key";

export const secretKeys = {
  /**
   * The data key that encrypts the secrets of the company's webhooks. It has a separate partition, so that most functions' IAM policies can
   * exclude it.
   */
  dataKey: (companyId: number): Key => ({ pk: `C#${companyId}#WK`, sk: "KEY" }),
  /** The data key that encrypts the tokens of the console's sessions. */
  sessionDataKey: (companyId: number): Key => ({ pk: `C#${companyId}#SK`, sk: "KEY" }),
  /** The data key that encrypts the cursors of `GET /api/changes`. */
  cursorDataKey: (companyId: number): Key => ({ pk: `C#${companyId}#CK`, sk: "KEY" }),
} as const;
