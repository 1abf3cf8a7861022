/** Reads streams for all their event sources: each record is asked for and parsed once, however far one source is behind another. */
import * as z from "zod/mini";
import type { AwsCall } from "./aws-json.ts";

const RecordSchema = z.looseObject({
  eventName: z.string(),
  dynamodb: z.looseObject({ SequenceNumber: z.string(), ApproximateCreationDateTime: z.number() }),
});
const Answer = z.object({ Records: z.array(RecordSchema), NextShardIterator: z.nullish(z.string()) });
export type StreamRecord = z.infer<typeof RecordSchema>;

/** A place in a stream, and what it tells if any source may want it. */
export interface Told {
  readonly sequenceNumber: string;
  readonly record: StreamRecord | undefined;
}

export interface StreamPage {
  /** In the order of the stream. */
  readonly told: readonly Told[];
  /** Undefined after the shard's end. */
  readonly next: string | undefined;
}

/** A stream answers no more at once. */
const PAGE_RECORDS = 1_000;
/** For sources that are behind: of the records that somebody may want, with all that each of them holds. */
export const KEPT_RECORDS = 10_000;
/** Places of the others, of which nothing is kept. */
const KEPT_PLACES = 100_000;

/** By iterator: the server names equal places alike. Nothing is gained, and nothing lost, with one that does not. */
export class StreamPages {
  readonly #streams: AwsCall;
  readonly #isWanted: (record: StreamRecord) => boolean;
  readonly #asked = new Map<string, Promise<StreamPage>>();
  /** None is empty: at the stream's end there may be more the next time. */
  readonly #kept = new Map<string, StreamPage>();
  #places = 0;
  #records = 0;

  /** @param isWanted by any source. */
  constructor(streams: AwsCall, isWanted: (record: StreamRecord) => boolean) {
    this.#streams = streams;
    this.#isWanted = isWanted;
  }

  /** From this place on: what is known, or else what the stream answers now. */
  async read(iterator: string): Promise<StreamPage> {
    const told: Told[] = [];
    let next: string | undefined = iterator;
    while (next !== undefined && told.length < PAGE_RECORDS) {
      const known = this.#kept.get(next);
      if (known === undefined) break;
      told.push(...known.told);
      next = known.next;
    }
    return told.length > 0 || next === undefined ? { told, next } : this.#ask(next);
  }

  /** Once for all who ask at the same time. */
  #ask(iterator: string): Promise<StreamPage> {
    const asked = this.#asked.get(iterator) ?? this.#read(iterator).finally(() => this.#asked.delete(iterator));
    this.#asked.set(iterator, asked);
    return asked;
  }

  async #read(ShardIterator: string): Promise<StreamPage> {
    const answer = await this.#streams("GetRecords", { ShardIterator, Limit: PAGE_RECORDS });
    const { Records, NextShardIterator } = z.parse(Answer, answer);
    const told = Records.map((record) => ({
      sequenceNumber: record.dynamodb.SequenceNumber,
      record: this.#isWanted(record) ? record : undefined,
    }));
    const page = { told, next: NextShardIterator ?? undefined };
    if (told.length > 0) this.#keep(ShardIterator, page);
    return page;
  }

  /** The oldest are forgotten first. */
  #keep(iterator: string, page: StreamPage): void {
    this.#kept.set(iterator, page);
    this.#count(page, 1);
    for (const [oldest, forgotten] of this.#kept) {
      if (this.#records <= KEPT_RECORDS && this.#places <= KEPT_PLACES) return;
      this.#kept.delete(oldest);
      this.#count(forgotten, -1);
    }
  }

  #count({ told }: StreamPage, sign: 1 | -1): void {
    this.#places += sign * told.length;
    this.#records += sign * told.filter(({ record }) => record !== undefined).length;
  }
}
