/** The keys of the rows for webhook deliveries. */
import { type Key, padded, shardOf } from "#shared/db/keys.ts";

export const limiterKeys = {
  limiter: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#G`, sk: "GATE" }),
  limiterAt: ({ pk }: Key): { companyId: number; webhookId: number } | undefined => {
    const [, companyId, webhookId] = /^C#(\d+)#D#(\d+)#G$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), webhookId: Number(webhookId) };
  },
} as const;

/** A record, and a registration that receives its events. Each such pair has its own debounce windows. */
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
  /** The row contains the id of the window's delivery. If the row does not exist, the next event opens a window. */
  window: (record: RegisteredRecord): Key => debounceKey("W", record),
  /** A repeated event has the same key, and is stored only once. `event` is the end of the event's id, from the event's name on. */
  event: (record: RegisteredRecord, version: number, event: string): Key => {
    const { pk, sk } = debounceKey("V", record);
    return { pk, sk: `${sk}#${padded(version)}#${event}` };
  },
  /** The events from one version of the record to another, both included, sorted by version. */
  events: (record: RegisteredRecord, from: number, to: number) => {
    const { pk, sk } = debounceKey("V", record);
    // `$` sorts directly after `#`, so the range includes all events of the version `to`.
    return { pk, from: `${sk}#${padded(from)}`, upTo: `${sk}#${padded(to)}$` };
  },
  /** All rows of one partition of a webhook: debounce windows with their events, and manual triggers. */
  shard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: debouncePartition(companyId, webhookId, shard),
  }),
  /** The row with the time of the last manual trigger, and the id of its delivery. */
  manualTrigger: (record: RegisteredRecord): Key => debounceKey("M", record),
} as const;

/**
 * A lane is one of a company's two queues of fan-outs. A fan-out is an event with so many matches that the deliverer creates the deliveries
 * in steps. One function at a time works on a lane, the oldest fan-out first. Events of bulk jobs have a separate lane, so that they do not
 * delay other events.
 */
export interface FanOutLane {
  readonly companyId: number;
  readonly isBulk?: true | undefined;
}

const fanOutPartition = ({ companyId, isBulk }: FanOutLane): string => `C#${companyId}#D#F${isBulk ? "B" : ""}`;

export const fanOutKeys = {
  /** The fan-outs whose deliveries are not all created, the oldest first. */
  waiting: (lane: FanOutLane): { pk: string; begins: string } => ({ pk: fanOutPartition(lane), begins: "E#" }),
  fanOut: (lane: FanOutLane, createdAt: string, eventId: string): Key => ({
    pk: fanOutPartition(lane),
    sk: `E#${createdAt}#${eventId}`,
  }),
  /** The row that says which function works on the lane, and how many deliveries of its oldest fan-out exist. */
  progress: (lane: FanOutLane): Key => ({ pk: fanOutPartition(lane), sk: "PROGRESS" }),
  laneAt: ({ pk, sk }: Key): FanOutLane | undefined => {
    const [, companyId, bulk] = /^C#(\d+)#D#F(B?)$/.exec(pk) ?? [];
    if (companyId === undefined || !sk.startsWith("E#")) return undefined;
    return { companyId: Number(companyId), isBulk: bulk === "B" ? true : undefined };
  },
  /** The data of an event, if it is too large to be stored in each delivery of the event. */
  eventData: (companyId: number, eventId: string): Key => ({ pk: `C#${companyId}#D#E#${eventId}`, sk: "DATA" }),
} as const;

const dayPartition = (companyId: number, day: string): string => `C#${companyId}#D#L#${day}`;

export const expectedKeys = {
  /** The list of the expected deliveries of an event. Each day (UTC) has a separate partition. */
  entry: (companyId: number, day: string, eventId: string): Key => ({
    pk: dayPartition(companyId, day),
    sk: `E#${eventId}`,
  }),
  day: (companyId: number, day: string): { pk: string } => ({ pk: dayPartition(companyId, day) }),
} as const;

export const replayKeys = {
  replay: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#REPLAY`, sk: "REPLAY" }),
  replayAt: ({ pk }: Key): { companyId: number; webhookId: number } | undefined => {
    const [, companyId, webhookId] = /^C#(\d+)#D#(\d+)#REPLAY$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), webhookId: Number(webhookId) };
  },
  /**
   * The deliveries from the first id that begins with `first` to the last one that begins with `last`. If `after` is set, the range starts
   * behind this delivery and its attempts.
   */
  between: (after: string | undefined, first: string, last: string) => ({
    from: after === undefined ? `D#${first}` : `D#${after}#~`,
    upTo: `D#${last}~`,
  }),
} as const;
