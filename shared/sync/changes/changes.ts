/**
 * Returns the pages of `GET /api/changes`: a snapshot, and then the changes since it began. A position in the change log, and not a clock,
 * decides which changes are new. The client therefore misses no change (docs/decisions/2026-11-23-changes.md).
 */
import { createHash } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import { type Change, POSITION_MS } from "#shared/company-index/change-log.ts";
import type { Unflushed } from "#shared/company-index/delta.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import { ChunkLost, readLog } from "#shared/company-index/read/chunks.ts";
import { dictionaryAtLeast } from "#shared/reference/dictionary.ts";
import { checksumsOf } from "#shared/sync/changes/checksums.ts";
import {
  byKey,
  type Cursor,
  deliveredOf,
  firstPlace,
  foreignCursor,
  isWithin,
  knownOf,
  nothingDelivered,
  openCursor,
  resetRequired,
  sealCursor,
  seesAll,
} from "#shared/sync/changes/cursor.ts";
import { addElapsed } from "#shared/sync/changes/elapsed.ts";
import { type ChangesContext, type Making, PageItems } from "#shared/sync/changes/items.ts";
import { addRecords } from "#shared/sync/changes/records.ts";
import { type ChangeItem, type ChangesPage, type ChangesQuery, ChangeType } from "#shared/sync/changes/schema.ts";
import { type Bulk, Interest, Selection, sorted, supersededIn } from "#shared/sync/changes/selection.ts";
import { readStages, type Stage, StageReads } from "#shared/sync/changes/stages.ts";

interface Page {
  readonly items: readonly ChangeItem[];
  readonly next: Cursor;
  readonly hasMore: boolean;
  /** The number of records in the snapshot. Undefined in a page after the snapshot. */
  readonly total?: number;
  /** The unflushed entries, if the page reaches the end of the log. */
  readonly reached?: Unflushed;
}

/**
 * Without a cursor, returns the first page of a snapshot. Throws `sync_reset_required` if the cursor has expired, if the log lacks changes
 * after it, or if the caller has got or lost the right to see all prospects. Throws `validation_failed` if the cursor is damaged, belongs
 * to another user, or was made for other types.
 */
export async function readChanges(
  context: ChangesContext,
  caller: Caller,
  { cursor: text, types: asked, limit, checksum = false }: ChangesQuery,
): Promise<ChangesPage> {
  const cursor = text === undefined ? undefined : await openCursor(context.secrets, caller, text);
  if (cursor !== undefined && asked !== undefined && !isSame(asked, cursor.types)) throw foreignCursor();
  const types = cursor?.types ?? asked ?? ChangeType.options;
  const nowMs = Math.max(context.clock.now(), (cursor?.elapsed.at ?? 1) - 1);
  const making = { context, caller, types, nowMs };
  if (cursor !== undefined && nowMs - cursor.position.since > POSITION_MS) throw resetRequired("expired", types);
  const { items, next, hasMore, total, reached } =
    cursor !== undefined && cursor.snapshot === undefined
      ? await changesPage(making, cursor, limit)
      : await snapshotPage(making, cursor, limit);
  const isChecked = checksum && !hasMore && reached !== undefined;
  const checksums = isChecked ? await checksumsOf(making, reached, items) : undefined;
  const sealed = await sealCursor(context.secrets, caller, next);
  const phase = total === undefined ? "changes" : "snapshot";
  return { phase, items: [...items], cursor: sealed, hasMore, total, checksums };
}

const isSame = (types: readonly ChangeType[], others: readonly ChangeType[]): boolean =>
  types.length === others.length && types.every((type) => others.includes(type));

/** The position of a new cursor is before the snapshot, so the client later also gets what is written during the snapshot. */
const beginning = ({ caller, types, nowMs: since }: Making, head: Head): Cursor => ({
  types,
  seesAll: seesAll(caller),
  logId: logOf(head),
  position: { version: head.version, offset: 0, since },
  delivered: nothingDelivered,
  elapsed: { at: since + 1, id: 0, quietUntil: Number.POSITIVE_INFINITY },
  snapshot: undefined,
  partial: undefined,
});

/** The order of the types in a snapshot. A cursor contains a position in this order, so the order must not change. */
const order: readonly ChangeType[] = ["statuses", "tags", "users", "territories", "prospects", "appointments", "notes"];

async function snapshotPage(making: Making, known: Cursor | undefined, limit: number): Promise<Page> {
  const reads = new StageReads(making);
  const { head } = await reads.found();
  if (known !== undefined) requireLog(known, head);
  const cursor = known ?? beginning(making, head);
  const { snapshot, elapsed } = cursor;
  const total = snapshot?.total ?? (await reads.count());
  const page = new PageItems(limit);
  const stages = order.filter((type) => making.types.includes(type)).map((type): Stage => ({ type }));
  const place = await readStages(reads, stages, snapshot ?? firstPlace, page);
  const next = {
    ...cursor,
    elapsed: { ...elapsed, quietUntil: Math.min(elapsed.quietUntil, page.quietUntil) },
    snapshot: place && { ...place, total },
  };
  return { items: page.items, next, hasMore: true, total };
}

/** A chunk usually contains at least this number of changes. A page that needs more changes reads several chunks at once. */
const CHANGES_PER_CHUNK = 24;
/** Number of chunks to read at once for a user who sees only assigned prospects. Most changes do not concern this user. */
const CHUNKS_FOR_FEW = 256;

async function changesPage(making: Making, cursor: Cursor, limit: number): Promise<Page> {
  const { context, caller, types, nowMs } = making;
  const { companyId } = caller;
  const chunksAtOnce = cursor.seesAll ? Math.ceil(limit / CHANGES_PER_CHUNK) + 1 : CHUNKS_FOR_FEW;
  const log = await readLog(context.table, companyId, cursor.position.version, chunksAtOnce);
  const { head } = log.unflushed;
  // Take the time after the read, because the log may contain changes that were made while it was read.
  const since = Math.max(nowMs, context.clock.now());
  requireLog(cursor, head);
  const interest = new Interest(caller, types);
  const unflushed = sorted(log.unflushed.changes.filter(interest.concerns));
  const known = knownOf(cursor.delivered, unflushed, head.version !== cursor.position.version);
  const isSuperseded = supersededIn(log.changesAtHand, cursor.partial);
  const selection = new Selection(limit, interest, isSuperseded, cursor.position);
  await selection.addChunks(log.chunks, known).catch((error: unknown) => {
    throw error instanceof ChunkLost ? resetRequired("log_restarted", types) : error;
  });
  const hasAllChunks =
    selection.bulk === undefined && selection.position.version >= head.lastChunk && !selection.isFull;
  if (hasAllChunks) {
    selection.position = { version: head.version, offset: 0, since };
    selection.addUnflushed(unflushed, known);
  }
  const page = new PageItems(limit);
  const namesOf = () => dictionaryAtLeast(context, companyId, head.dictionaryVersion);
  const end = hasAllChunks ? { since: cursor.position.since, moved: selection.moved } : undefined;
  const company = { namesVersion: head.dictionaryVersion, namesOf, end };
  const { records, bulk } = selection;
  const done =
    bulk === undefined
      ? await addRecords(making, records, cursor.partial, company, page)
      : { records: 0, partial: await addBulk(making, cursor.partial, bulk, page) };
  const isBulkDone = bulk !== undefined && done.partial === undefined;
  const cut = bulk === undefined ? records[done.records] : undefined;
  const quietUntil = Math.min(cursor.elapsed.quietUntil, page.quietUntil);
  const position = cut?.before ?? (isBulkDone ? bulk.after : bulk?.before) ?? selection.position;
  const next = { ...cursor, position, elapsed: { ...cursor.elapsed, quietUntil }, partial: done.partial };
  if (!hasAllChunks || cut?.before !== undefined) return { items: page.items, next, hasMore: true };
  const shown = new Set(records.slice(0, done.records).map(({ id }) => id));
  // An item shows the current state of its record, so later pages need no older changes of the record. A rename is an exception: the client
  // needs the items of all records that show the name.
  const isShown = (change: Change): boolean =>
    (shown.has(change.id) && interest.stagesOf(change).length === 0) || (isBulkDone && byKey(bulk.key, change) === 0);
  const isDelivered = (change: Change): boolean => known.isDelivered(change) || isShown(change) || isSuperseded(change);
  const delivered = deliveredOf(unflushed, isDelivered);
  const isAll = unflushed.every(isDelivered);
  const isQuiet = quietUntil > nowMs;
  const reached = { items: page.items, reached: log.unflushed };
  if (!isAll || isQuiet || page.room <= 0) {
    return { ...reached, next: { ...next, delivered }, hasMore: !(isAll && isQuiet) };
  }
  const { elapsed, hasMore } = await addElapsed(making, cursor.elapsed, await namesOf(), page);
  return { ...reached, next: { ...next, delivered, elapsed }, hasMore };
}

/** Adds the items of many records that one change concerns. Returns where the next page continues, or undefined if all items are added. */
async function addBulk(making: Making, partial: Cursor["partial"], { key, stages }: Bulk, page: PageItems) {
  const from = isWithin(partial, key) ? partial : firstPlace;
  const place = await readStages(new StageReads(making), stages, from, page);
  return place && { key: { id: key.id, version: key.version }, ...place };
}

/** Contains the table's name: a restored table has the same `logId`, but its log gives the same version numbers to other changes. */
const logOf = ({ logId }: Head): string =>
  createHash("sha256")
    .update(JSON.stringify([process.env.TABLE_NAME, logId]))
    .digest("base64url")
    .slice(0, 16);

function requireLog({ types, logId, position }: Cursor, head: Head): void {
  if (logId !== logOf(head) || position.version > head.version) throw resetRequired("log_restarted", types);
}
