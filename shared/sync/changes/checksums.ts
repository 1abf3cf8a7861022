/** The checksums of a caller's records, with which a client finds out whether its copies are complete and current. */
import { at, doubleAt, uint16At } from "#shared/at.ts";
import type { Unflushed } from "#shared/company-index/delta.ts";
import type { Coded } from "#shared/company-index/encoding.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { criteriaOf } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { lowsOf, prospectLow, shownVersion } from "#shared/prospects/record-version.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { territoryVersions } from "#shared/reference/territory-areas.ts";
import type { ChangeKey } from "#shared/sync/changes/cursor.ts";
import { type Making, userVersion } from "#shared/sync/changes/items.ts";
import { type ChangeItem, CheckedType, type Checksums } from "#shared/sync/changes/schema.ts";

/**
 * Returns the checksums of a client that has applied all pages up to the one with `items`. The rows of these items were read after
 * `unflushed`. An item therefore replaces the record of the company index, which may be older.
 */
export async function checksumsOf(
  { context, caller, types, nowMs }: Making,
  unflushed: Unflushed,
  items: readonly ChangeItem[],
): Promise<Checksums> {
  const { companyId } = caller;
  const found = await findProspects(context, companyId, (names) => criteriaOf({}, caller, names), { unflushed });
  const { statuses, tags, users } = found.names;
  const sources: Record<CheckedType, () => Iterable<ChangeKey> | Promise<Iterable<ChangeKey>>> = {
    prospects: () => prospectsIn(found.matches, found.names, nowMs),
    territories: async () => shown(await territoryVersions(context.table, companyId, unflushed.head)),
    statuses: () => shown(statuses.values()),
    tags: () => shown(tags.values()),
    users: () => [...users.values()].map((user) => ({ id: user.id, version: userVersion(user, nowMs) })),
  };
  const sums: Checksums = {};
  for (const type of CheckedType.options) {
    if (!types.includes(type)) continue;
    const last = items.filter((item) => item.type === type);
    sums[type] = checksumOf(type, copies(await sources[type](), last));
  }
  return sums;
}

/** Computes the parts of `low` (see `shownVersion`) once for each value of a column, and not once for each prospect. */
function* prospectsIn({ segments, unflushed }: Matches, names: Dictionary, nowMs: number): Generator<ChangeKey> {
  const parts = lowsOf(names, nowMs);
  for (const { inView, rows } of segments) {
    const { ids, versions, statusId, assignedToUserId, tagIds, appointments } = inView.segment.main;
    const lows = [
      lowBy(statusId, parts.ofStatus),
      lowBy(assignedToUserId, parts.ofUser),
      lowBy(tagIds, parts.ofTags),
      lowBy(appointments, ({ ahead }) => parts.ofAhead(ahead)),
    ];
    for (const row of rows) {
      let low = 0;
      for (const lowAt of lows) low += lowAt(row);
      yield { id: doubleAt(ids, row), version: shownVersion(doubleAt(versions, row), low) };
    }
  }
  for (const row of unflushed) yield { id: row.id, version: shownVersion(row.version, prospectLow(row, parts)) };
}

function lowBy<T>({ values, codes }: Coded<T>, lowOf: (value: T) => number): (row: number) => number {
  const lows = values.map(lowOf);
  return (row) => at(lows, uint16At(codes, row));
}

function* shown(rows: Iterable<ChangeKey>): Generator<ChangeKey> {
  for (const { id, version } of rows) yield { id, version: shownVersion(version) };
}

function* copies(records: Iterable<ChangeKey>, items: readonly ChangeItem[]): Generator<ChangeKey> {
  const newest = new Map<number, ChangeItem>();
  for (const item of items) {
    const known = newest.get(item.id);
    if (known === undefined || item.version >= known.version) newest.set(item.id, item);
  }
  for (const record of records) if (!newest.has(record.id)) yield record;
  for (const item of newest.values()) if (item.op === "upsert") yield item;
}

/** Returns the XOR of the 64-bit FNV-1a hashes of the texts `type:id:version` of all records, in hexadecimal digits. */
export function checksumOf(type: CheckedType, records: Iterable<ChangeKey>): string {
  const begin = fnv1a(OFFSET_BASIS, `${type}:`);
  let [high, low] = [0, 0];
  for (const { id, version } of records) {
    const hash = fnv1a(begin, `${id}:${version}`);
    high ^= hash.high;
    low ^= hash.low;
  }
  return [high, low].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The halves of a number of 64 bits, as signed integers. BigInt would take ten times as long. */
interface Halves {
  readonly high: number;
  readonly low: number;
}

const OFFSET_BASIS: Halves = { high: 0xcbf29ce4 | 0, low: 0x84222325 | 0 };
/** The lower half of the FNV prime, which is 2^40 + 0x1b3. */
const PRIME_LOW = 0x1b3;

/** The text must be ASCII. */
function fnv1a({ high, low }: Halves, text: string): Halves {
  for (let i = 0; i < text.length; i++) {
    const mixed = low ^ text.charCodeAt(i);
    const carry = ((mixed >>> 16) * PRIME_LOW + (((mixed & 0xffff) * PRIME_LOW) >>> 16)) >>> 16;
    high = (Math.imul(high, PRIME_LOW) + (mixed << 8) + carry) | 0;
    low = Math.imul(mixed, PRIME_LOW);
  }
  return { high, low };
}
