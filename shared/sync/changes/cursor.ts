/** The cursor of `GET /api/changes`. It is encrypted with a data key of the company, so that a client cannot change it. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import type { Key } from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { NotSealed, type Purpose, type Secrets } from "#shared/secrets/secrets.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";

export interface Position {
  /** The client has read all chunks up to this version of the head. */
  readonly version: number;
  /** Number of changes that the client has read of the next chunk. */
  readonly offset: number;
  /**
   * A time at which the log ended at this position, in milliseconds since 1970. All changes that the client has were made before this time.
   * The cursor expires `POSITION_MS` after it.
   */
  readonly since: number;
}

/** The numbers by which a record is sorted among the records of its type. Each type has its own numbers. */
export type Order = readonly [number, number, number];

/** A place in a list of stages. Each stage reads records of one type, in a fixed order. */
export interface Place {
  readonly stage: number;
  /** The order of the last record that was read. */
  readonly after: Order | undefined;
}

export const firstPlace: Place = { stage: 0, after: undefined };

/** Identifies a change: the record, and its version after the change. Records of different kinds never have the same id. */
export interface ChangeKey {
  readonly id: number;
  readonly version: number;
}

export const byKey = (a: ChangeKey, b: ChangeKey): number => a.id - b.id || a.version - b.version;

/** The client has got only some of the items of the change `key`. The next page continues at this place. */
export interface PartialChange extends Place {
  readonly key: ChangeKey;
}

/** True if the last page ended within this change. */
export const isWithin = (partial: PartialChange | undefined, change: ChangeKey): partial is PartialChange =>
  partial !== undefined && byKey(partial.key, change) === 0;

/**
 * The client has the changes of all events up to this place. An event changes a record without a write: the begin of an appointment, or the
 * expiry of an invitation. Events are sorted by `at`, in milliseconds since 1970, and then by `id`.
 */
export interface Elapsed {
  readonly at: number;
  readonly id: number;
  /** Until this time, in milliseconds since 1970, none of the client's records changes without a write. */
  readonly quietUntil: number;
}

/**
 * The unflushed changes that the client has: a list, or, if they are too many for a list, the beginning of all sorted unflushed changes.
 * `covered` has the last change of this beginning, and the number of its changes. After a flush, or if the number has grown, the client
 * gets all unflushed changes again.
 */
interface Delivered {
  readonly list: readonly ChangeKey[];
  readonly covered: { readonly last: ChangeKey; readonly count: number } | undefined;
}

export const nothingDelivered: Delivered = { list: [], covered: undefined };

export interface Cursor {
  readonly types: readonly ChangeType[];
  readonly seesAll: boolean;
  readonly logId: string;
  readonly position: Position;
  readonly delivered: Delivered;
  readonly elapsed: Elapsed;
  /** Undefined if the client has read the whole snapshot. */
  readonly snapshot: (Place & { readonly total: number }) | undefined;
  readonly partial: PartialChange | undefined;
}

export const seesAll = (caller: Caller): boolean => visibleAssignee(caller) === undefined;

/** Maximum bytes of `Delivered.list`, because a cursor has at most 512 characters. A list of 64 changes usually needs 200 bytes. */
const LIST_BYTES = 209;

const nameOf = ({ id, version }: ChangeKey): string => `${id}#${version}`;

export interface Known {
  /** For a change in a chunk: true if the list shows that the client got it while it was unflushed. */
  isListed(change: ChangeKey): boolean;
  /** For an unflushed change: true if the client surely has it. */
  isDelivered(change: ChangeKey): boolean;
}

/** `unflushed`: all unflushed changes that concern the caller, sorted. `wasFlushed`: true if a flush may have followed the cursor. */
export function knownOf({ list, covered }: Delivered, unflushed: readonly ChangeKey[], wasFlushed: boolean): Known {
  const names = new Set(list.map(nameOf));
  const isListed = (change: ChangeKey): boolean => names.has(nameOf(change));
  if (covered === undefined) return { isListed, isDelivered: isListed };
  const isCovered = (change: ChangeKey): boolean => byKey(change, covered.last) <= 0;
  const isSame = !wasFlushed && unflushed.filter(isCovered).length === covered.count;
  return { isListed, isDelivered: (change) => isSame && isCovered(change) };
}

/** `unflushed` must be sorted. */
export function deliveredOf<C extends ChangeKey>(
  unflushed: readonly C[],
  isDelivered: (change: C) => boolean,
): Delivered {
  const list = unflushed.filter(isDelivered);
  const into = new ByteWriter();
  writeList(into, list);
  if (into.finish().length <= LIST_BYTES) return { list, covered: undefined };
  const end = unflushed.findIndex((change) => !isDelivered(change));
  const first = end < 0 ? unflushed : unflushed.slice(0, end);
  const last = first.at(-1);
  return { list: [], covered: last === undefined ? undefined : { last, count: first.length } };
}

const FORMAT = 1;

/** The encoded value of an infinite `quietUntil`. No real time has this value: as milliseconds since 1970, it lies after the year 9999. */
const NEVER = 2 ** 48;

function write(into: ByteWriter, ...values: readonly number[]): void {
  for (const value of values) into.integer(value);
}

function writeOptional<T>(into: ByteWriter, value: T | undefined, writeValue: (value: T) => void): void {
  into.integer(value === undefined ? 0 : 1);
  if (value !== undefined) writeValue(value);
}

const readOptional = <T>(from: ByteReader, readValue: () => T): T | undefined =>
  from.integer() === 0 ? undefined : readValue();

const readKey = (from: ByteReader): ChangeKey => ({ id: from.integer(), version: from.integer() });

/** The list must be sorted by id. */
function writeList(into: ByteWriter, list: readonly ChangeKey[]): void {
  into.integer(list.length);
  let previous = 0;
  for (const { id, version } of list) {
    write(into, id - previous, version);
    previous = id;
  }
}

function readList(from: ByteReader): ChangeKey[] {
  let id = 0;
  return Array.from({ length: from.integer() }, () => {
    id += from.integer();
    return { id, version: from.integer() };
  });
}

function writePlace(into: ByteWriter, { stage, after }: Place): void {
  into.integer(stage);
  writeOptional(into, after, (numbers) => {
    for (const number of numbers) into.signed(number);
  });
}

const readPlace = (from: ByteReader): Place => ({
  stage: from.integer(),
  after: readOptional(from, () => [from.signed(), from.signed(), from.signed()] as const),
});

function encoded({ types, position, delivered, elapsed, snapshot, partial, ...rest }: Cursor): string {
  const into = new ByteWriter();
  const bits = types.reduce((all, type) => all | (1 << ChangeType.options.indexOf(type)), 0);
  write(into, FORMAT, bits, rest.seesAll ? 1 : 0);
  into.text(rest.logId);
  write(into, position.version, position.offset, position.since);
  writeList(into, delivered.list);
  writeOptional(into, delivered.covered, ({ last, count }) => write(into, last.id, last.version, count));
  write(into, elapsed.at, elapsed.id, Math.min(elapsed.quietUntil, NEVER));
  writeOptional(into, snapshot, (place) => {
    writePlace(into, place);
    into.integer(place.total);
  });
  writeOptional(into, partial, ({ key, ...place }) => {
    write(into, key.id, key.version);
    writePlace(into, place);
  });
  return Buffer.from(into.finish()).toString("base64url");
}

/** Returns undefined if a release with another format of cursors has made the cursor. */
function decoded(text: string): Cursor | undefined {
  const from = new ByteReader(Buffer.from(text, "base64url"));
  if (from.integer() !== FORMAT) return undefined;
  const bits = from.integer();
  return {
    types: ChangeType.options.filter((_, i) => (bits & (1 << i)) !== 0),
    seesAll: from.integer() === 1,
    logId: from.text(),
    position: { version: from.integer(), offset: from.integer(), since: from.integer() },
    delivered: {
      list: readList(from),
      covered: readOptional(from, () => ({ last: readKey(from), count: from.integer() })),
    },
    elapsed: { at: from.integer(), id: from.integer(), quietUntil: from.integer() },
    snapshot: readOptional(from, () => ({ ...readPlace(from), total: from.integer() })),
    partial: readOptional(from, () => ({ key: readKey(from), ...readPlace(from) })),
  };
}

const PURPOSE: Purpose = "sync-cursors";

/** Binds the cursor to its user: the service can decrypt it only with the key for which it was encrypted. No row has this key. */
const boundTo = ({ companyId, userId }: Caller): Key => ({ pk: `C#${companyId}#CURSOR`, sk: `U#${userId}` });

export async function sealCursor(secrets: Secrets, caller: Caller, cursor: Cursor): Promise<string> {
  const sealed = await secrets.seal(caller.companyId, boundTo(caller), encoded(cursor), PURPOSE);
  return Buffer.from(sealed).toString("base64url");
}

const resetTexts = {
  expired: "The cursor is older than 60 days.",
  scope_changed: "The user's role or permissions have changed, so the user sees other records.",
  log_restarted: "The company's change log began anew after the cursor was made.",
} as const;

export function resetRequired(reason: keyof typeof resetTexts, types: readonly ChangeType[]): ApiError {
  const location = `/api/changes?types=${types.join(",")}`;
  return new ApiError("sync_reset_required", `${resetTexts[reason]} Begin anew without a cursor.`, {
    members: { reason },
    location,
  });
}

export function foreignCursor(cause?: unknown): ApiError {
  const message = "is damaged, or belongs to another user or to other types";
  const faults = [{ parameter: "cursor", code: "invalid_cursor", message }];
  return new ApiError("validation_failed", `The cursor ${message}.`, { faults, cause });
}

/** Throws the errors of `foreignCursor` and `resetRequired`. */
export async function openCursor(secrets: Secrets, caller: Caller, text: string): Promise<Cursor> {
  const bytes = Buffer.from(text, "base64url");
  // Refuse characters outside the alphabet of base64url, which Node.js would skip.
  if (bytes.toString("base64url") !== text) throw foreignCursor();
  const opened = await secrets.open(caller.companyId, boundTo(caller), bytes, PURPOSE).catch((error: unknown) => {
    throw error instanceof NotSealed ? foreignCursor(error) : error;
  });
  const cursor = decoded(opened);
  if (cursor === undefined) throw resetRequired("log_restarted", ChangeType.options);
  if (cursor.seesAll !== seesAll(caller)) throw resetRequired("scope_changed", cursor.types);
  return cursor;
}
