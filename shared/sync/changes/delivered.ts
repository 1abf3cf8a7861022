/**
 * Stores in a cursor which unflushed changes the client already has. A short list of them is in the cursor. Otherwise the unflushed changes
 * are sorted, and the cursor covers only those before the first one that the client lacks. It contains the last covered change and the
 * number of covered changes. Until the next flush, changes are only added. If this number has grown or there was a flush, the client gets
 * all covered changes again.
 */
import { type ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";

/** No two records have the same id, even if they are of different kinds. */
export interface ChangeKey {
  readonly id: number;
  readonly version: number;
}

export const byKey = (a: ChangeKey, b: ChangeKey): number => a.id - b.id || a.version - b.version;

/** Maximum bytes of the list in a cursor, so that the cursor has at most 512 characters. A list of 64 changes usually needs 200 bytes. */
const LIST_BYTES = 209;

export interface Delivered {
  readonly list: readonly ChangeKey[];
  readonly part: { readonly last: ChangeKey; readonly count: number } | undefined;
}

export const nothingDelivered: Delivered = { list: [], part: undefined };

const nameOf = ({ id, version }: ChangeKey): string => `${id}#${version}`;

export interface Known {
  /** Use it for a change in a chunk, which the client may have got while it was unflushed. The number counts unflushed changes only. */
  isListed(change: ChangeKey): boolean;
  isDelivered(change: ChangeKey): boolean;
}

/**
 * `unflushed` must be all that concern the caller, sorted. `wasFlushed` is true if there may have been a flush since the cursor was made.
 */
export function knownOf({ list, part }: Delivered, unflushed: readonly ChangeKey[], wasFlushed: boolean): Known {
  const names = new Set(list.map(nameOf));
  const isListed = (change: ChangeKey): boolean => names.has(nameOf(change));
  if (part === undefined) return { isListed, isDelivered: isListed };
  const isInPart = (change: ChangeKey): boolean => byKey(change, part.last) <= 0;
  const isSame = !wasFlushed && unflushed.filter(isInPart).length === part.count;
  return { isListed, isDelivered: (change) => isSame && isInPart(change) };
}

/** `unflushed` must be sorted. `isDelivered` returns true for a change that the client has. */
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
  return { list: [], part: last === undefined ? undefined : { last, count: first.length } };
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
  into.integer(part.count);
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
  return { list, part: { last, count: from.integer() } };
}
