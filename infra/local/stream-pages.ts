/**
 * Reads each page of a DynamoDB stream once and caches it, so that all event sources of the stream share it even if their positions differ.
 */
import type { AttributeValue, _Record as SdkRecord } from "@aws-sdk/client-dynamodb-streams";

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
  /** Undefined if no event source accepts the record. */
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
/** Maximum number of records in the cache. An event source that is slower than the others reads its records from the cache. */
export const CACHED_RECORDS = 10_000;
/** Maximum number of entries in the cache. It may be larger than `CACHED_RECORDS`, because an entry without a record is small. */
const CACHED_ENTRIES = 100_000;

/**
 * Caches pages by their iterator. The bundled DynamoDB server returns the same iterator for the same position. Another server
 * (`DYNAMODB_ENDPOINT`) may return different iterators for it. The pages are then still correct, but the cache may never be hit.
 */
export class StreamPages {
  readonly #getRecords: GetRecords;
  readonly #isWanted: (record: SdkRecord) => boolean;
  readonly #pending = new Map<string, Promise<StreamPage>>();
  /** Pages by iterator. An empty page is never cached, because the next read at the end of the stream may find records. */
  readonly #cached = new Map<string, StreamPage>();
  #entries = 0;
  #records = 0;

  constructor(getRecords: GetRecords, isWanted: (record: SdkRecord) => boolean) {
    this.#getRecords = getRecords;
    this.#isWanted = isWanted;
  }

  /** Returns the cached entries from this position on. If no entry is cached, it fetches the next page of the stream. */
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
    this.#count(page, 1);
    for (const [oldest, evicted] of this.#cached) {
      if (this.#records <= CACHED_RECORDS && this.#entries <= CACHED_ENTRIES) return;
      this.#cached.delete(oldest);
      this.#count(evicted, -1);
    }
  }

  #count({ entries }: StreamPage, sign: 1 | -1): void {
    this.#entries += sign * entries.length;
    this.#records += sign * entries.filter(({ record }) => record !== undefined).length;
  }
}

type Image = Readonly<Record<string, AttributeValue>>;

function lambdaRecord({ dynamodb = {}, ...record }: SdkRecord): StreamRecord {
  const { Keys, OldImage, NewImage, SequenceNumber = "", ApproximateCreationDateTime, ...rest } = dynamodb;
  return {
    ...record,
    dynamodb: {
      ...rest,
      ApproximateCreationDateTime: (ApproximateCreationDateTime?.getTime() ?? 0) / 1_000,
      SequenceNumber,
      ...(Keys !== undefined && { Keys: lambdaImage(Keys) }),
      ...(OldImage !== undefined && { OldImage: lambdaImage(OldImage) }),
      ...(NewImage !== undefined && { NewImage: lambdaImage(NewImage) }),
    },
  };
}

const lambdaImage = (image: Image): object =>
  Object.fromEntries(Object.entries(image).map(([name, value]) => [name, lambdaValue(value)]));

function lambdaValue(value: AttributeValue): object {
  if (value.B !== undefined) return { B: base64(value.B) };
  if (value.BS !== undefined) return { BS: value.BS.map(base64) };
  if (value.M !== undefined) return { M: lambdaImage(value.M) };
  return value.L === undefined ? value : { L: value.L.map(lambdaValue) };
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
