/** The keys of webhook delivery: limiters, debounce windows, fan-outs, expected deliveries, replays and data keys. */
import { type Key, padded, shardOf } from "#shared/db/keys.ts";

/** Keys of concurrency limiters. */
export const limiterKeys = {
  /** How many deliveries of a webhook are in flight, and is the webhook's breaker open? */
  limiter: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#G`, sk: "GATE" }),
  /** Which webhook has the limiter with this key? */
  limiterAt: ({ pk }: Key): { companyId: number; id: number } | undefined => {
    const [, companyId, id] = /^C#(\d+)#D#(\d+)#G$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
} as const;

/** A record as seen by one registration of a webhook. Each pair of record and registration has its own debounce window. */
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

/** Keys of debounce windows, of the events in them, and of manual triggers. */
export const debounceKeys = {
  /**
   * The row names the delivery that the next event of a record joins, if the registration has a delay. Without a row, the next event opens
   * a debounce window.
   */
  window: (record: RegisteredRecord): Key => debounceKey("W", record),
  /** An event in a debounce window. A repeated publication of the event writes the same row. */
  event: (record: RegisteredRecord, version: number, event: string): Key => {
    const { pk, sk } = debounceKey("V", record);
    return { pk, sk: `${sk}#${padded(version)}#${event}` };
  },
  /** The events from one version of the record to another, both included, sorted by version. */
  events: (record: RegisteredRecord, from: number, to: number) => {
    const { pk, sk } = debounceKey("V", record);
    // `$` sorts directly after `#`, so the range includes every event of the last version.
    return { pk, from: `${sk}#${padded(from)}`, upTo: `${sk}#${padded(to)}$` };
  },
  /** One of the webhook's partitions of windows, window events and manual triggers. */
  shard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: debouncePartition(companyId, webhookId, shard),
  }),
  /** Which delivery did the last manual trigger for a record make, and when? */
  manualTrigger: (record: RegisteredRecord): Key => debounceKey("M", record),
} as const;

const fanOutPartition = (companyId: number): string => `C#${companyId}#D#F`;

/** Keys of fan-outs and of shared event data. A fan-out is an event with many deliveries, which the queue makes later. */
export const fanOutKeys = {
  /** Which events still have deliveries to make? The oldest event comes first. */
  waiting: (companyId: number): { pk: string; begins: string } => ({ pk: fanOutPartition(companyId), begins: "E#" }),
  fanOut: (companyId: number, createdAt: string, eventId: string): Key => ({
    pk: fanOutPartition(companyId),
    sk: `E#${createdAt}#${eventId}`,
  }),
  /** Which function is making the company's deliveries, and how many of the oldest event's deliveries are made? */
  progress: (companyId: number): Key => ({ pk: fanOutPartition(companyId), sk: "PROGRESS" }),
  /** Which company has the event with this key? */
  companyAt: ({ pk, sk }: Key): number | undefined => {
    const [, companyId] = /^C#(\d+)#D#F$/.exec(pk) ?? [];
    return companyId === undefined || !sk.startsWith("E#") ? undefined : Number(companyId);
  },
  /** What is the data of an event whose deliveries do not store the data themselves? */
  eventData: (companyId: number, eventId: string): Key => ({ pk: `C#${companyId}#D#E#${eventId}`, sk: "DATA" }),
} as const;

const dayPartition = (companyId: number, day: string): string => `C#${companyId}#D#L#${day}`;

/** Keys of expected deliveries. The reconciliation compares them with the deliveries that exist. */
export const expectedKeys = {
  /** Which deliveries must the service make for an event? Each day (UTC) has a separate partition. */
  entry: (companyId: number, day: string, eventId: string): Key => ({
    pk: dayPartition(companyId, day),
    sk: `E#${eventId}`,
  }),
  /** Does the event have a fan-out, and is the fan-out complete? The row is in the partition of the event's day. */
  fanOut: (companyId: number, day: string, eventId: string): Key => ({
    pk: dayPartition(companyId, day),
    sk: `F#${eventId}`,
  }),
  day: (companyId: number, day: string): { pk: string } => ({ pk: dayPartition(companyId, day) }),
} as const;

/** Keys of replays, and of the deliveries that a replay reads. */
export const replayKeys = {
  /** What is the state of the current or last replay of a webhook? */
  replay: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#REPLAY`, sk: "REPLAY" }),
  /** Which webhook has the replay with this key? */
  replayAt: ({ pk }: Key): { companyId: number; webhookId: number } | undefined => {
    const [, companyId, webhookId] = /^C#(\d+)#D#(\d+)#REPLAY$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), webhookId: Number(webhookId) };
  },
  /**
   * The deliveries whose ids begin with a prefix from `first` to `last`. If `after` is set, the range begins after that delivery and its
   * attempts.
   */
  between: (after: string | undefined, first: string, last: string) => ({
    from: after === undefined ? `D#${first}` : `D#${after}#~`,
    upTo: `D#${last}~`,
  }),
} as const;

/** The key of a company's data key. */
export const secretKeys = {
  /** Which data key encrypts the secrets of the company's webhooks? The row is in a partition that few functions may read. */
  dataKey: (companyId: number): Key => ({ pk: `C#${companyId}#WK`, sk: "KEY" }),
} as const;
