/** The flush: moves unflushed entries into a new run of segments, and merges runs of similar size. */
import { setTimeout as sleep } from "node:timers/promises";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import { readUnflushed, removeUnflushed, type Unflushed, weightOf, withTexts } from "#shared/company-index/delta.ts";
import { type Head, type Run, readManifest, readRunManifests } from "#shared/company-index/manifest.ts";
import { readRunOverrides } from "#shared/company-index/pieces.ts";
import { isTombstone } from "#shared/company-index/record.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { type Delta, type FlushedVersions, flushedVersions, newestUnflushed } from "#shared/company-index/versions.ts";
import { collectGarbage } from "#shared/company-index/write/garbage-collection.ts";
import { inMemory, mergeRuns, runsToMerge } from "#shared/company-index/write/merge.ts";
import { sortedByGeohash } from "#shared/company-index/write/order.ts";
import { discardRun, type IndexContext, type NewRun, publish, storeRun } from "#shared/company-index/write/publish.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import type { Table } from "#shared/db/table.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

/** Least weight of the entries of a flush. Fewer entries cost a read a few kilobytes; a flush writes at least six items. */
export const FLUSH_ENTRIES = 128;

/** Reads of a text that is not visible yet. */
const TEXT_TRIES = 5;

/** A Query that ran while the head moved may still need the entries that the flush removes. */
const SETTLE_MS = 250;

export interface Flushed {
  /** Entries that are in segments now. */
  readonly entries: number;
  /** Weight of the remaining entries: they are too few, or another flush has taken them. */
  readonly left: number;
  readonly merges: number;
}

/** May be repeated, killed at any point, or run twice at once: the later flush finds less or nothing to do. */
export async function flush(
  context: IndexContext,
  companyId: number,
  { least = FLUSH_ENTRIES, settleMs = SETTLE_MS } = {},
): Promise<Flushed> {
  const { table, clock } = context;
  const unflushed = await readUnflushed(table, companyId);
  const { head } = unflushed;
  const entries = unflushed.keys.length;
  if (unflushed.weight < least) return { entries: 0, left: unflushed.weight, merges: 0 };
  const runManifests = await readRunManifests(table, companyId, "strong");
  const before: IndexState = {
    head,
    runs: (await readManifest(table, companyId, head.manifest, { runManifests })).runs,
  };
  const built = await newRun(table, companyId, before.runs, unflushed);
  const after = built === undefined ? { state: before, merges: 0 } : await putNewRun(context, companyId, before, built);
  if (after === undefined) return { entries: 0, left: unflushed.weight, merges: 0 };
  await sleep(settleMs);
  await removeUnflushed(table, companyId, unflushed);
  if (after.state !== before) await collectGarbage(table, companyId, head.manifest, runManifests, clock.now());
  // A merge may forget deletions, so the older entries must be gone before it.
  return { entries, left: 0, merges: after.merges + (await mergeAll(context, companyId, after.state)) };
}

interface Put {
  readonly state: IndexState;
  readonly merges: number;
}

/**
 * Merges the new entries directly with the runs that would be merged next, so that their own run need not be stored and removed a minute
 * later. Never includes the oldest run. Undefined if another flush was faster.
 */
async function putNewRun(
  context: IndexContext,
  companyId: number,
  before: IndexState,
  built: BuiltRun,
): Promise<Put | undefined> {
  const { head, runs } = before;
  const sizes = [...runs, { rows: built.rows.length }];
  const from = isCompactionLocked(context, head) ? undefined : mergeable(sizes);
  const isMerge = from !== undefined && from > 0;
  const run = isMerge
    ? mergeRuns(
        [...(await runsToMerge(context.table, companyId, runs.slice(from))), inMemory(built, runs.length)],
        false,
      )
    : built;
  const state = await putRun(context, companyId, before, isMerge ? from : runs.length, run);
  return state === undefined ? undefined : { state, merges: isMerge ? 1 : 0 };
}

/** While a rebuild is about to replace runs, no merge may mix them with newer runs. */
const isCompactionLocked = ({ clock }: IndexContext, { mergesRestUntil }: Head): boolean =>
  mergesRestUntil > clock.now();

/** Returns the number of merges. */
async function mergeAll(context: IndexContext, companyId: number, before: IndexState): Promise<number> {
  let state: IndexState | undefined = before;
  for (let merges = 0; ; merges++) {
    if (isCompactionLocked(context, state.head)) return merges;
    const from = mergeable(state.runs);
    if (from === undefined) return merges;
    state = await merge(context, companyId, state, from);
    if (state === undefined) return merges;
  }
}

interface IndexState {
  readonly head: Head;
  readonly runs: readonly Run[];
}

interface BuiltRun extends NewRun {
  readonly rows: readonly RowWithNotes[];
}

/** Undefined if all unflushed entries had been flushed before. */
async function newRun(
  table: Table,
  companyId: number,
  runs: readonly Run[],
  unflushed: Unflushed,
): Promise<BuiltRun | undefined> {
  const runOverrides = await readRunOverrides(table, companyId, runs);
  const known = flushedVersions(runOverrides);
  const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
  const delta = await withSettledTexts(table, companyId, newest, known, unflushed.withLongText);
  const prospects = [...delta.prospects.values()];
  const notes = [...delta.notes.values()];
  if (prospects.length + notes.length === 0) return undefined;
  return {
    rows: sortedByGeohash(prospects.flatMap((entry) => (isTombstone(entry) ? [] : [{ row: entry, notes: [] }]))),
    looseNotes: notes.flatMap(({ text, ...note }) => (text === null ? [] : [{ ...note, text }])),
    prospects,
    notes: notes.map(({ noteId, version }) => ({ id: noteId, version })),
  };
}

/** A read does not see a transaction as a whole: a text may become visible after its entry. */
async function withSettledTexts(
  table: Table,
  companyId: number,
  newest: Delta,
  known: FlushedVersions,
  withLongText: ReadonlySet<string>,
): Promise<Delta> {
  for (let attempt = 1; ; attempt++) {
    const { delta, missing } = await withTexts(table, companyId, newest, known, withLongText);
    if (missing === 0) return delta;
    if (attempt === TEXT_TRIES) throw new Error(`${missing} unflushed entries of company ${companyId} lack texts`);
    await sleep(20 * attempt);
  }
}

/** Replaces the runs from age `from` on by a new run. Undefined if another flush was faster. */
async function putRun(
  context: IndexContext,
  companyId: number,
  { head, runs }: IndexState,
  from: number,
  built: NewRun,
): Promise<IndexState | undefined> {
  const run = await storeRun(context.table, companyId, built);
  const next = [...runs.slice(0, from), run];
  const manifest = next.map(({ id }) => id);
  const moved = await publish(context, companyId, head, run, manifest);
  if (moved !== undefined) return { head: moved, runs: next };
  await discardRun(context.table, companyId, run);
  return undefined;
}

/** Newer runs are merged into a run once they have this many times its size together. Each merge rewrites all rows of the run. */
export const MERGE_RATIO = 5;

/**
 * Age of the oldest run to merge with all newer runs; undefined if no merge is due. Sizes grow sixfold, with up to five runs of a size: few
 * runs, and one rewrite of a row for each size. The oldest run has most of the rows. It is merged once the others have its size, because
 * rows that they replace make each cold read dearer.
 */
export function mergeable(runs: readonly Sized[]): number | undefined {
  let newer = 0;
  let first: number | undefined;
  for (let age = runs.length - 1; age >= 0; age--) {
    const size = sizeOf(runs[age]);
    if (newer > 0 && newer >= size * (age === 0 ? 1 : MERGE_RATIO)) first = age;
    newer += size;
  }
  return first;
}

type Sized = Pick<Run, "rows">;

/** A run of deletions and notes counts as one row. */
const sizeOf = (run: Sized | undefined): number => Math.max(1, run?.rows ?? 0);

async function merge(
  context: IndexContext,
  companyId: number,
  state: IndexState,
  from: number,
): Promise<IndexState | undefined> {
  const toMerge = await runsToMerge(context.table, companyId, state.runs.slice(from));
  if (from === 0 && (await hasRemainders(context.table, companyId, flushedVersions(toMerge)))) return undefined;
  return putRun(context, companyId, state, from, mergeRuns(toMerge, from === 0));
}

/**
 * Whether an entry is left that is older than the runs: a flush may have missed it, because its Query was no snapshot. If a merge forgot
 * the deletion that hides such an entry, the record would come back. The next flush removes the entry.
 */
async function hasRemainders(
  table: Table,
  companyId: number,
  { prospectVersions, noteVersions }: FlushedVersions,
): Promise<boolean> {
  const { entries, notes, withLongText } = await readUnflushed(table, companyId);
  // A flush may have taken the text of an entry whose very version the runs have.
  const least = withLongText.size > 0 ? 1 : 0;
  return (
    entries.some(({ id, version }) => version < prospectVersions.versionOf(id) + least) ||
    notes.some(({ noteId, version }) => version < noteVersions.versionOf(noteId) + least)
  );
}

/**
 * Handles a batch of stream records: weighs the new entries of each company, and flushes the companies with enough of them.
 *
 * A warm function remembers the weight since the last flush and reads the table only if a flush may be due; a cold function
 * checks at the first record. A failed flush does not delay other companies: its first record is reported after all companies had
 * their turn.
 */
export function flushStream(
  context: () => IndexContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const weights = new Map<number, number>();
  return async ({ Records }) => {
    const companies = Map.groupBy(Records, companyOf);
    const failed: string[] = [];
    for (const [companyId, records] of companies) {
      const added = records.reduce(
        (weight, { dynamodb }) =>
          weight + weightOf(dynamodb?.NewImage === undefined ? {} : itemOfImage(dynamodb.NewImage)),
        0,
      );
      const entries = (weights.get(companyId) ?? FLUSH_ENTRIES) + added;
      weights.set(companyId, entries);
      if (entries < FLUSH_ENTRIES) continue;
      try {
        weights.set(companyId, await withLogContext({ companyId }, () => flushCompany(context(), companyId)));
      } catch (error) {
        log.error("index not flushed", { companyId, ...errorFields(error) });
        failed.push(records[0]?.dynamodb?.SequenceNumber ?? "");
      }
    }
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** Returns the weight of the remaining entries. */
async function flushCompany(context: IndexContext, companyId: number): Promise<number> {
  const { left, ...done } = await flush(context, companyId);
  if (done.entries > 0) log.info("index flushed", done);
  return left;
}

/** The partition key of an entry is `C#<company>#X`. */
function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = /^C#(\d+)#X$/.exec(dynamodb?.Keys?.pk?.S ?? "") ?? [];
  if (companyId === undefined) throw new Error("the stream record is not a delta entry");
  return Number(companyId);
}
