/** The flush moves unflushed entries into a new run, and merges runs of similar size. */
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

/**
 * Least weight of entries that justifies a flush. Fewer entries cost each read only a few kilobytes, while a flush writes at least six
 * items.
 */
export const FLUSH_ENTRIES = 128;

/** Most reads of a text that is not visible yet. */
const TEXT_TRIES = 5;

/** Pause before the removal of flushed entries. A Query that ran while the head moved may still need them. */
const SETTLE_MS = 250;

export interface Flushed {
  /** Number of entries that this flush moved into segments. */
  readonly entries: number;
  /** Weight of the remaining entries, which are too few for a flush or belong to another flush. */
  readonly left: number;
  readonly merges: number;
}

/**
 * Flushes the entries of a company. The flush may be repeated, killed at any point, or run twice at the same time: the later flush then
 * finds fewer entries or none.
 */
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
  // Remove the entries before a merge, because the merge may drop the deletions that hide older entries.
  return { entries, left: 0, merges: after.merges + (await mergeAll(context, companyId, after.state)) };
}

interface Put {
  readonly state: IndexState;
  readonly merges: number;
}

/**
 * Merges the new entries directly with the runs that would be merged next, so that the entries need no separate run for a minute. Never
 * merges with the oldest run. Returns undefined if another flush was faster.
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

/** Whether a rebuild is about to replace runs. A merge must not mix those runs with newer runs. */
const isCompactionLocked = ({ clock }: IndexContext, { mergesRestUntil }: Head): boolean =>
  mergesRestUntil > clock.now();

/** Merges as long as a merge is due. Returns the number of merges. */
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

/** The new run; undefined if all unflushed entries have already been flushed. */
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

/**
 * Adds the long texts, and tries again if some are missing. A Query is no snapshot of a transaction, so a text may become visible after its
 * entry.
 */
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

/** Replaces the runs from age `from` on by a new run. Returns undefined if another flush was faster. */
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

/**
 * Newer runs are merged into a run if together they have at least this many times the run's rows. A higher ratio means more runs but fewer
 * rewrites, because each merge rewrites all rows of the run.
 */
export const MERGE_RATIO = 5;

/**
 * Age of the oldest run to merge with all newer runs; undefined if no merge is due.
 *
 * The size of runs grows sixfold from one level to the next, with up to five runs on each level. The number of runs therefore stays small,
 * and a row is rewritten only once on each level. The oldest run has most of the rows and is merged only when all other runs together have
 * as many rows. Waiting longer would make cold reads more expensive, because they load both the old rows and the rows that replace them.
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

/** A run that contains only deletions and notes counts as one row. */
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
 * Whether an entry remains that is older than the runs. A flush may have missed the entry, because its Query was no snapshot. If a merge
 * dropped the deletion that hides such an entry, the deleted record would appear again. The next flush removes the entry.
 */
async function hasRemainders(
  table: Table,
  companyId: number,
  { prospectVersions, noteVersions }: FlushedVersions,
): Promise<boolean> {
  const { entries, notes, withLongText } = await readUnflushed(table, companyId);
  // If there are long texts, an entry with the same version as the runs counts too, because a flush may have removed its text.
  const least = withLongText.size > 0 ? 1 : 0;
  return (
    entries.some(({ id, version }) => version < prospectVersions.versionOf(id) + least) ||
    notes.some(({ noteId, version }) => version < noteVersions.versionOf(noteId) + least)
  );
}

/**
 * Handles a batch of stream records: adds up the weight of the new entries of each company, and flushes the companies with enough weight.
 *
 * A warm function remembers the weight since the last flush and reads the table only if a flush may be due. A cold function reads the table
 * at the first record of a company. A failed flush does not delay other companies, because its first record is reported only after all
 * companies have been handled.
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

/** Flushes the company and returns the weight of the remaining entries. */
async function flushCompany(context: IndexContext, companyId: number): Promise<number> {
  const { left, ...done } = await flush(context, companyId);
  if (done.entries > 0) log.info("index flushed", done);
  return left;
}

/** Returns the company id from the partition key of an entry, which has the form `C#<company>#X`. */
function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = /^C#(\d+)#X$/.exec(dynamodb?.Keys?.pk?.S ?? "") ?? [];
  if (companyId === undefined) throw new Error("the stream record is not a delta entry");
  return Number(companyId);
}
