/**
 * The unflushed changes that a client already has. A cursor names them exactly if they fit. Otherwise it contains the last one of a
 * complete first part of the changes, and a digest of this part. If the digest differs later, the client gets the part again.
 */
import { createHash } from "node:crypto";
import { type ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";

/** Identifies one change. The ids of all kinds of records are different. */
export interface ChangeKey {
  readonly id: number;
  readonly version: number;
}

export const byKey = (a: ChangeKey, b: ChangeKey): number => a.id - b.id || a.version - b.version;

/** Maximum bytes of the list in a cursor. A cursor has at most 512 characters. 64 changes usually need 200 bytes. */
const LIST_BYTES = 212;
const DIGEST_BYTES = 8;

export interface Delivered {
  readonly list: readonly ChangeKey[];
  readonly part: { readonly last: ChangeKey; readonly digest: Uint8Array } | undefined;
}

export const nothingDelivered: Delivered = { list: [], part: undefined };

const nameOf = ({ id, version }: ChangeKey): string => `${id}#${version}`;

function digestOf(keys: readonly ChangeKey[]): Uint8Array {
  const hash = createHash("sha256").update(keys.map(nameOf).join());
  return Uint8Array.from(hash.digest().subarray(0, DIGEST_BYTES));
}

export interface Known {
  /** True if the list names this change. Only the list is valid for changes in a chunk. */
  isListed(change: ChangeKey): boolean;
  /** True if the client has this unflushed change. */
  isDelivered(change: ChangeKey): boolean;
}

/** Returns what the client has. `unflushed` must be all unflushed changes that concern the caller, sorted. */
export function knownOf({ list, part }: Delivered, unflushed: readonly ChangeKey[]): Known {
  const names = new Set(list.map(nameOf));
  const isListed = (change: ChangeKey): boolean => names.has(nameOf(change));
  if (part === undefined) return { isListed, isDelivered: isListed };
  const isInPart = (change: ChangeKey): boolean => byKey(change, part.last) <= 0;
  const isSame = Buffer.compare(digestOf(unflushed.filter(isInPart)), part.digest) === 0;
  return { isListed, isDelivered: (change) => isSame && isInPart(change) };
}

/** Returns what a cursor stores. `unflushed` must be sorted, and `isDelivered` tells which of these changes the client has. */
export function deliveredOf<C extends ChangeKey>(
  unflushed: readonly C[],
  isDelivered: (change: C) => boolean,
): Delivered {
  const list = unflushed.filter(isDelivered);
  if (list.length === 0) return nothingDelivered;
  const into = new ByteWriter();
  writeList(into, list);
  if (into.finish().length <= LIST_BYTES) return { list, part: undefined };
  const end = unflushed.findIndex((change) => !isDelivered(change));
  const first = end < 0 ? unflushed : unflushed.slice(0, end);
  const last = first.at(-1);
  return { list: [], part: last === undefined ? undefined : { last, digest: digestOf(first) } };
}

function writeList(into: ByteWriter, list: readonly ChangeKey[]): void {
  into.integer(list.length);
  let before = 0;
  for (const { id, version } of list) {
    into.integer(id - before);
    into.integer(version);
    before = id;
  }
}

export function writeDelivered(into: ByteWriter, { list, part }: Delivered): void {
  writeList(into, list);
  into.integer(part === undefined ? 0 : 1);
  if (part === undefined) return;
  into.integer(part.last.id);
  into.integer(part.last.version);
  into.raw(part.digest);
}

export function readDelivered(from: ByteReader): Delivered {
  const list: ChangeKey[] = [];
  let before = 0;
  for (let left = from.integer(); left > 0; left--) {
    const id = before + from.integer();
    list.push({ id, version: from.integer() });
    before = id;
  }
  if (from.integer() === 0) return { list, part: undefined };
  const last = { id: from.integer(), version: from.integer() };
  return { list, part: { last, digest: from.raw(DIGEST_BYTES) } };
}
