/**
 * Reads the pages of a DynamoDB stream and caches them. All event sources of the stream use this cache, so that each page is read only
 * once, although the event sources may be at different positions.
 */
import type { _Record as SdkRecord } from "@aws-sdk/client-dynamodb-streams";
import { imageOf } from "./stream-image.ts";

/**
 * A stream record in the form in which Lambda passes it to a function: binary values are base64 strings, and times are in seconds since
 * 1970.
 */
export interface StreamRecord extends Readonly<Record<string, unknown>> {
  readonly dynamodb: {
    readonly SequenceNumber: string;
    readonly ApproximateCreationDateTime: number;
    readonly [name: string]: unknown;
  };
}

export interface StreamEntry {
  readonly sequenceNumber: string;
  /** The stream record. Undefined if the filters of all event sources refuse it. */
  readonly record: StreamRecord | undefined;
}

export interface StreamPage {
  readonly entries: readonly StreamEntry[];
  /** The iterator of the next page. Undefined at the end of the shard (a shard is one part of the stream). */
  readonly next: string | undefined;
}

export type GetRecords = (
  iterator: string,
  limit: number,
) => Promise<{ readonly Records?: readonly SdkRecord[] | undefined; readonly NextShardIterator?: string | undefined }>;

const PAGE_RECORDS = 1_000;
/** Maximum number of entries in the cache. The cache is for event sources that read more slowly than the others. */
export const CACHED_ENTRIES = 10_000;

/**
 * Caches pages by the iterator with which they were read. The local DynamoDB server returns the same iterator for the same position.
 * Another server (set by `DYNAMODB_ENDPOINT`) may return a new iterator each time. The pages are then still correct, but are never found in
 * the cache.
 */
export class StreamPages {
  readonly #getRecords: GetRecords;
  readonly #isWanted: (record: SdkRecord) => boolean;
  readonly #pending = new Map<string, Promise<StreamPage>>();
  /** Cached pages by iterator. An empty page is never cached, because a later read with the same iterator may find new records. */
  readonly #cached = new Map<string, StreamPage>();
  #entries = 0;

  constructor(getRecords: GetRecords, isWanted: (record: SdkRecord) => boolean) {
    this.#getRecords = getRecords;
    this.#isWanted = isWanted;
  }

  /** Returns the cached entries from the position of the iterator on. If none is cached, fetches the page at this position. */
  async read(iterator: string): Promise<StreamPage> {
    const entries: StreamEntry[] = [];
    let next: string | undefined = iterator;
    while (next !== undefined && entries.length < PAGE_RECORDS) {
      const known = this.#cached.get(next);
      if (known === undefined) break;
      entries.push(...known.entries);
      next = known.next;
    }
    return entries.length > 0 || next === undefined ? { entries, next } : this.#fetch(next);
  }

  /** Fetches a page. Event sources that need the same page at the same time share one call of `getRecords`. */
  #fetch(iterator: string): Promise<StreamPage> {
    const pending = this.#pending.get(iterator) ?? this.#call(iterator).finally(() => this.#pending.delete(iterator));
    this.#pending.set(iterator, pending);
    return pending;
  }

  async #call(iterator: string): Promise<StreamPage> {
    const { Records = [], NextShardIterator } = await this.#getRecords(iterator, PAGE_RECORDS);
    const entries = Records.map((record) => ({
      sequenceNumber: record.dynamodb?.SequenceNumber ?? "",
      record: this.#isWanted(record) ? lambdaRecord(record) : undefined,
    }));
    const page = { entries, next: NextShardIterator };
    if (entries.length > 0) this.#keep(iterator, page);
    return page;
  }

  #keep(iterator: string, page: StreamPage): void {
    this.#cached.set(iterator, page);
    this.#entries += page.entries.length;
    for (const [oldest, evicted] of this.#cached) {
      if (this.#entries <= CACHED_ENTRIES) return;
      this.#cached.delete(oldest);
      this.#entries -= evicted.entries.length;
    }
  }
}

function lambdaRecord({ dynamodb = {}, ...record }: SdkRecord): StreamRecord {
  const { Keys, OldImage, NewImage, SequenceNumber = "", ApproximateCreationDateTime, ...rest } = dynamodb;
  return {
    ...record,
    dynamodb: {
      ...rest,
      ApproximateCreationDateTime: (ApproximateCreationDateTime?.getTime() ?? 0) / 1_000,
      SequenceNumber,
      ...(Keys !== undefined && { Keys: imageOf(Keys) }),
      ...(OldImage !== undefined && { OldImage: imageOf(OldImage) }),
      ...(NewImage !== undefined && { NewImage: imageOf(NewImage) }),
    },
  };
}
