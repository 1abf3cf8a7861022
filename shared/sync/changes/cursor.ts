/**
 * The cursor of `GET /api/changes`. It is encrypted and authenticated with a data key of the company, so that a client cannot change it.
 */

import type { Caller } from "#shared/auth/caller.ts";
import { visibleAssignee } from "#shared/auth/caller.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import type { Key } from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { NotSealed, type Purpose, type Secrets } from "#shared/secrets/secrets.ts";
import { type ChangeKey, type Delivered, readDelivered, writeDelivered } from "#shared/sync/changes/delivered.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";

export interface Position {
  /** The client has read all chunks up to this version of the head row. */
  readonly version: number;
  /** Number of changes that the client has read of the next chunk. */
  readonly offset: number;
  /**
   * A time at which the log ended here, in milliseconds since 1970. The cursor expires `POSITION_MS` after it. All changes that the client
   * has were made before it.
   */
  readonly since: number;
}

/** A place in a list of stages. Each stage reads records of one type, in a fixed order. */
export interface Place {
  readonly stage: number;
  /** The three numbers by which the last record was sorted. Their meaning depends on the type. Undefined before the first record. */
  readonly after: readonly [number, number, number] | undefined;
}

export interface SnapshotProgress extends Place {
  /** The number of records at the beginning of the snapshot. Undefined before the first page. */
  readonly total: number | undefined;
}

/** The client has got only the first items of the change `key`. The next page continues at this place. */
export interface PartialChange extends Place {
  readonly key: ChangeKey;
}

/** The client has the changes of all events up to this place. Events happen without a write, and are sorted by `at` and then by `id`. */
export interface Elapsed {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly id: number;
  /** Until this time, in milliseconds since 1970, none of the client's records changes without a write. */
  readonly quietUntil: number;
}

export interface Cursor {
  readonly types: readonly ChangeType[];
  readonly seesAll: boolean;
  readonly logId: string;
  readonly position: Position;
  readonly delivered: Delivered;
  readonly elapsed: Elapsed;
  /** Undefined if the client has read the whole snapshot. */
  readonly snapshot: SnapshotProgress | undefined;
  readonly partial: PartialChange | undefined;
}

export const seesAll = (caller: Caller): boolean => visibleAssignee(caller) === undefined;

const FORMAT = 1;

/** The encoded value of an infinite `quietUntil`. As milliseconds since 1970, it is after the year 9999. */
const NEVER = 2 ** 48;

function writePlace(into: ByteWriter, { stage, after }: Place): void {
  into.integer(stage);
  into.integer(after === undefined ? 0 : 1);
  for (const part of after ?? []) into.signed(part);
}

function readPlace(from: ByteReader): Place {
  const stage = from.integer();
  const after = from.integer() === 0 ? undefined : ([from.signed(), from.signed(), from.signed()] as const);
  return { stage, after };
}

function encoded({ types, position, delivered, elapsed, snapshot, partial, ...rest }: Cursor): string {
  const into = new ByteWriter();
  into.integer(FORMAT);
  into.integer(types.reduce((bits, type) => bits | (1 << ChangeType.options.indexOf(type)), 0));
  into.integer(rest.seesAll ? 1 : 0);
  into.text(rest.logId);
  into.integer(position.version);
  into.integer(position.offset);
  into.integer(position.since);
  writeDelivered(into, delivered);
  into.integer(elapsed.at);
  into.integer(elapsed.id);
  into.integer(Math.min(elapsed.quietUntil, NEVER));
  into.integer(snapshot === undefined ? 0 : 1);
  if (snapshot !== undefined) {
    writePlace(into, snapshot);
    into.integer(snapshot.total ?? 0);
  }
  into.integer(partial === undefined ? 0 : 1);
  if (partial !== undefined) {
    into.integer(partial.key.id);
    into.integer(partial.key.version);
    writePlace(into, partial);
  }
  return Buffer.from(into.finish()).toString("base64url");
}

function decoded(text: string): Cursor | undefined {
  const from = new ByteReader(Buffer.from(text, "base64url"));
  if (from.integer() !== FORMAT) return undefined;
  const bits = from.integer();
  const types = ChangeType.options.filter((_, i) => (bits & (1 << i)) !== 0);
  const [isAll, logId] = [from.integer() === 1, from.text()];
  const position = { version: from.integer(), offset: from.integer(), since: from.integer() };
  const delivered = readDelivered(from);
  const elapsed = { at: from.integer(), id: from.integer(), quietUntil: from.integer() };
  const snapshot = from.integer() === 0 ? undefined : { ...readPlace(from), total: from.integer() };
  const partial =
    from.integer() === 0 ? undefined : { key: { id: from.integer(), version: from.integer() }, ...readPlace(from) };
  return { types, seesAll: isAll, logId, position, delivered, elapsed, snapshot, partial };
}

const PURPOSE: Purpose = "sync-cursors";

/** No stored row has this key. It binds the cursor to the user: only with the same key can the cursor be decrypted. */
const boundTo = ({ companyId, userId }: Caller): Key => ({ pk: `C#${companyId}#CURSOR`, sk: `U#${userId}` });

export async function sealCursor(secrets: Secrets, caller: Caller, cursor: Cursor): Promise<string> {
  const sealed = await secrets.seal(caller.companyId, boundTo(caller), encoded(cursor), PURPOSE);
  return Buffer.from(sealed).toString("base64url");
}

function opened(secrets: Secrets, caller: Caller, text: string): Promise<string> {
  const bytes = Buffer.from(text, "base64url");
  // Node.js skips characters that are not in the alphabet of base64url, and would accept a cursor with such characters.
  if (bytes.toString("base64url") !== text) return Promise.reject(foreignCursor());
  return secrets.open(caller.companyId, boundTo(caller), bytes, PURPOSE);
}

export type ResetReason = "expired" | "scope_changed" | "log_restarted";

const resetTexts: Record<ResetReason, string> = {
  expired: "The cursor is older than 60 days.",
  scope_changed: "The user's role or permissions have changed, so the user sees other records.",
  log_restarted: "The company's change log began anew after the cursor was made.",
};

/** Returns the error that tells a client to start again with a snapshot of the same types. */
export function resetRequired(reason: ResetReason, types: readonly ChangeType[]): ApiError {
  const location = `/api/changes?types=${types.join(",")}`;
  return new ApiError("sync_reset_required", `${resetTexts[reason]} Begin anew without a cursor.`, {
    members: { reason },
    location,
  });
}

export const foreignCursor = (cause?: unknown): ApiError =>
  new ApiError("validation_failed", "The cursor is damaged, or belongs to another user or to other types.", {
    faults: [
      {
        parameter: "cursor",
        code: "invalid_cursor",
        message: "is damaged, or belongs to another user or to other types",
      },
    ],
    cause,
  });

/**
 * Throws `validation_failed` if `text` is not a cursor of this caller. Throws `sync_reset_required` if the caller has got or lost the right
 * to see all prospects since the cursor was made, or if another release has made the cursor.
 */
export async function openCursor(secrets: Secrets, caller: Caller, text: string): Promise<Cursor> {
  const cursor = await opened(secrets, caller, text)
    .then(decoded)
    .catch((error: unknown) => {
      throw error instanceof NotSealed ? foreignCursor(error) : error;
    });
  if (cursor === undefined) throw resetRequired("log_restarted", ChangeType.options);
  if (cursor.seesAll !== seesAll(caller)) throw resetRequired("scope_changed", cursor.types);
  return cursor;
}
