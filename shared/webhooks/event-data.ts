/** Stores the data of an event in one row for all its deliveries. The row never changes, so warm functions cache it. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import * as z from "zod/mini";
import { cachePerTable } from "#shared/cache.ts";
import { absent } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { fanOutKeys } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";

export interface EventData {
  readonly bytes: number;
  /** Undefined if the data is in a separate row. */
  readonly text: string | undefined;
}

export const StoredEventData = z.object({
  type: z.literal("eventData"),
  companyId: Id,
  eventId: z.string(),
  bytes: z.int(),
  /** JSON text, compressed with zstd. */
  data: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  expiresAt: z.int(),
});
type StoredEventData = z.infer<typeof StoredEventData>;

/** Event data is kept this many milliseconds longer than a delivery, like the rows of a debounce window, which refer to it. */
const KEPT_LONGER_MS = 2 * 86_400_000;

/** Returns the expiry in seconds since 1970: later than that of all deliveries, even if a user changes their delay to the longest one. */
const eventDataExpiry = (createdAt: string, nowMs: number): number => {
  const delayMs = limits.delayMinutesMax * 60_000;
  return Math.ceil((Math.max(Date.parse(createdAt), nowMs) + delayMs + limits.deliveryKeptMs + KEPT_LONGER_MS) / 1_000);
};

/** Stores the data unless it is already stored. Returns the number of bytes of its JSON text. */
export async function keepEventData(
  table: Table,
  event: { readonly companyId: number; readonly id: string; readonly createdAt: string },
  text: string,
  nowMs: number,
): Promise<number> {
  const { companyId, id: eventId, createdAt } = event;
  const bytes = Buffer.byteLength(text);
  const expiresAt = eventDataExpiry(createdAt, nowMs);
  const row: StoredEventData = {
    type: "eventData",
    companyId,
    eventId,
    bytes,
    data: zstdCompressSync(text),
    expiresAt,
  };
  try {
    await table.write({ put: { ...fanOutKeys.eventData(companyId, eventId), ...row }, when: absent });
    return bytes;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    return StoredEventData.parse(error.failed[0]?.item).bytes;
  }
}

/** Maximum number of characters in the cache. About 60 events of the largest size fit. */
const CACHED = 16_000_000;
/** Number of rows that a batch call reads. The call returns at most 16 MB, and 25 rows are at most 10 MB large, 400 KB each. */
const TOGETHER = 25;

interface Cached {
  readonly read: Promise<string>;
  /** The number of characters of the text. It is 0 until the read has ended. */
  readonly size: number;
}

const caches = cachePerTable<Cached>({ maxBytes: CACHED, bytesOf: ({ size }) => size });

/** The row of an event never changes, so the cache needs only one version. */
const VERSION = 1;

/** Returns the data by event id as JSON text. Throws if a row does not exist. */
export async function readEventData(
  table: Reads,
  companyId: number,
  eventIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const cache = caches(table);
  const texts = new Map<string, Promise<string>>();
  const missing: string[] = [];
  for (const id of new Set(eventIds)) {
    const known = cache.get(id)?.value.read;
    if (known === undefined) missing.push(id);
    else texts.set(id, known);
  }
  for (let first = 0; first < missing.length; first += TOGETHER) {
    const some = missing.slice(first, first + TOGETHER);
    const rows = readRows(table, companyId, some);
    for (const id of some) {
      const read = rows.then((found) => found.get(id) ?? gone(id));
      cache.set(id, VERSION, { read, size: 0 });
      read.then(
        ({ length }) => cache.set(id, VERSION, { read, size: length }),
        () => cache.delete(id),
      );
      texts.set(id, read);
    }
    // One batch after the other: concurrent responses of several megabytes would need memory at the same time.
    await rows;
  }
  const found = new Map<string, string>();
  for (const [id, read] of texts) found.set(id, await read);
  return found;
}

async function readRows(table: Reads, companyId: number, eventIds: readonly string[]): Promise<Map<string, string>> {
  const items = await table.batchGet(eventIds.map((id) => fanOutKeys.eventData(companyId, id)));
  return new Map(
    items.map((item) => {
      const { eventId, data } = StoredEventData.parse(item);
      return [eventId, zstdDecompressSync(data).toString("utf8")];
    }),
  );
}

function gone(eventId: string): never {
  throw new Error(`the data of event ${eventId} is gone`);
}
