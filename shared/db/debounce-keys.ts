/** Keys of what a registration has to do with one record: its window, the events in it, and the last press of its button. */
import { type Key, padded, shardOf } from "#shared/db/keys.ts";

/** A record, as one registration of a webhook sees it. */
export interface RecordPlace {
  readonly companyId: number;
  readonly webhookId: number;
  readonly registrationId: number;
  readonly recordId: number;
}

const partition = (companyId: number, webhookId: number, shard: number): string =>
  `C#${companyId}#D#${webhookId}#R${shard}`;
const key = (kind: string, { companyId, webhookId, registrationId, recordId }: RecordPlace): Key => ({
  pk: partition(companyId, webhookId, shardOf(`${registrationId}#${recordId}`)),
  sk: `${kind}#${padded(registrationId)}#${padded(recordId)}`,
});

export const windowKeys = {
  /** Into which delivery does the next event of a record go, for a registration with a delay? None: it opens a window. */
  window: (place: RecordPlace): Key => key("W", place),
  /** An event of a record that a window has: one row, however often it is told. */
  event: (place: RecordPlace, version: number, event: string): Key => {
    const { pk, sk } = key("V", place);
    return { pk, sk: `${sk}#${padded(version)}#${event}` };
  },
  /** Those between two versions of the record, both included, in their order. */
  events: (place: RecordPlace, from: number, to: number) => {
    const { pk, sk } = key("V", place);
    // `$` is the character after `#`: every event of the last version is within.
    return { pk, from: `${sk}#${padded(from)}`, upTo: `${sk}#${padded(to)}$` };
  },
  /** One of the partitions that hold all these of a webhook. */
  shard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: partition(companyId, webhookId, shard),
  }),
  /** Which delivery did the last press of a manual registration's button for a record make, and when? */
  press: (place: RecordPlace): Key => key("M", place),
} as const;
