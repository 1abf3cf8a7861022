/** Which prospects an export holds, in their order: decided once, and kept in the bucket for the runs that come after. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import type { Place } from "#shared/company-index/search/page.ts";
import { blockOf } from "#shared/db/keys.ts";

/** In typed arrays, for there may be a million. */
export interface Order {
  readonly ids: Float64Array;
  readonly versions: Float64Array;
}

export function orderOf(places: Iterable<Place>, total: number): Order {
  const ids = new Float64Array(total);
  const versions = new Float64Array(total);
  let size = 0;
  for (const { id, version } of places) {
    ids[size] = id;
    versions[size++] = version;
  }
  return { ids: ids.subarray(0, size), versions: versions.subarray(0, size) };
}

/** As small numbers: neighbours in the list mostly have neighbouring ids. */
export function encodeOrder({ ids, versions }: Order): Uint8Array {
  const into = new ByteWriter();
  into.integer(ids.length);
  let last = 0;
  for (const [at, id] of ids.entries()) {
    into.signed(id - last);
    into.integer(versions[at] ?? 0);
    last = id;
  }
  return zstdCompressSync(into.finish());
}

export function decodeOrder(bytes: Uint8Array): Order {
  const from = new ByteReader(zstdDecompressSync(bytes));
  const count = from.integer();
  const [ids, versions] = [new Float64Array(count), new Float64Array(count)];
  let last = 0;
  for (let at = 0; at < count; at++) {
    last += from.signed();
    ids[at] = last;
    versions[at] = from.integer();
  }
  return { ids, versions };
}

/** From this place on. */
export function* placesFrom({ ids, versions }: Order, from: number): Generator<Pick<Place, "id" | "version">> {
  for (let at = from; at < ids.length; at++) yield { id: ids[at] ?? 0, version: versions[at] ?? 0 };
}

/** How many of them, from this place on, each block of ids holds. */
export function countsByBlock({ ids }: Order, from: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (const id of ids.subarray(from)) counts.set(blockOf(id), (counts.get(blockOf(id)) ?? 0) + 1);
  return counts;
}
