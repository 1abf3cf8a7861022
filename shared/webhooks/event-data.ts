/**
 * The data of an event, kept once for all deliveries that tell of it: a territory's polygon of 255 KB is one row, not one in each of
 * 2 000 deliveries. A row never changes, so a warm function keeps what it has read.
 */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import * as z from "zod/mini";
import { absent } from "#shared/db/expression.ts";
import { fanOutKeys } from "#shared/db/fan-out-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";

/** What is known of an event's data where its deliveries are made. */
export interface EventData {
  /** Of the data as JSON. */
  readonly bytes: number;
  /** JSON text; undefined where the data has a row of its own. */
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

/** Windows and their events are kept so much longer than their delivery. */
const KEPT_LONGER_MS = 2 * 86_400_000;

/**
 * As long as any delivery can refer to it: the longest delay, and the time for which a delivery is kept after that. Whatever delay the
 * registrations have at the moment: a repeated record may find another.
 */
export const eventDataExpiry = (createdAt: string, nowMs: number): number => {
  const delayMs = limits.delayMinutesMax * 60_000;
  return Math.ceil((Math.max(Date.parse(createdAt), nowMs) + delayMs + limits.deliveryKeptMs + KEPT_LONGER_MS) / 1_000);
};

/** Data that is kept already stays as it is. Gives the bytes of what is kept. */
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

/** Characters that a warm function keeps: some sixty of the largest events. */
const CACHED = 16_000_000;
/** Rows that one call reads: the largest ones fill less than its 16 MB. */
const TOGETHER = 25;

interface Cached {
  readonly read: Promise<string>;
  /** Characters; none until it is read. */
  size: number;
}

/** Of one table, the least recently used first. */
class Cache {
  readonly #entries = new Map<string, Cached>();
  #size = 0;

  get(id: string): Promise<string> | undefined {
    const known = this.#entries.get(id);
    if (known === undefined) return undefined;
    this.#entries.delete(id);
    this.#entries.set(id, known);
    return known.read;
  }

  /** A read that failed is not kept. */
  set(id: string, read: Promise<string>): void {
    const entry: Cached = { read, size: 0 };
    this.#entries.set(id, entry);
    read.then(
      ({ length }) => {
        if (this.#entries.get(id) !== entry) return;
        entry.size = length;
        this.#size += length;
        for (const [oldest, { size }] of this.#entries) {
          if (this.#size <= CACHED || oldest === id) break;
          this.#entries.delete(oldest);
          this.#size -= size;
        }
      },
      () => {
        if (this.#entries.get(id) === entry) this.#entries.delete(id);
      },
    );
  }
}

const caches = new WeakMap<Table, Cache>();

/** The JSON text of each of these events' data. Throws where one is gone. */
export async function readEventData(
  table: Table,
  companyId: number,
  eventIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const cache = caches.get(table) ?? new Cache();
  caches.set(table, cache);
  const texts = new Map<string, Promise<string>>();
  const missing: string[] = [];
  for (const id of new Set(eventIds)) {
    const known = cache.get(id);
    if (known === undefined) missing.push(id);
    else texts.set(id, known);
  }
  for (let first = 0; first < missing.length; first += TOGETHER) {
    const some = missing.slice(first, first + TOGETHER);
    const rows = readRows(table, companyId, some);
    for (const id of some) {
      const read = rows.then((found) => found.get(id) ?? gone(id));
      cache.set(id, read);
      texts.set(id, read);
    }
    // A call at a time: the data of a window is a megabyte, of some thousand rows it is not.
    await rows;
  }
  const found = new Map<string, string>();
  for (const [id, read] of texts) found.set(id, await read);
  return found;
}

async function readRows(table: Table, companyId: number, eventIds: readonly string[]): Promise<Map<string, string>> {
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
