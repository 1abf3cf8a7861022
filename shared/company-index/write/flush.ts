/** The flush: unflushed entries become a run of segments, and runs that have grown alike become one. */
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

/** Fewer unflushed entries, long ones counted as several, are left where they are: a read pays for their few kilobytes, a flush writes six items at least. */
export const FLUSH_ENTRIES = 128;

/** Looks at a text that is not there yet. */
const TEXT_TRIES = 5;

/** Queries that were under way when the head moved have read what is removed then. */
const SETTLE_MS = 250;

export interface Flushed {
  /** Entries that went into segments, or had been there before. */
  readonly entries: number;
  /** Weight of the entries that were left, for they are few or another flush has them. */
  readonly left: number;
  readonly merges: number;
}

/** Safe to repeat, to kill at any point and to run twice at once: the later one finds less or nothing to do. */
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
  const found: IndexState = {
    head,
    runs: (await readManifest(table, companyId, head.manifest, { runManifests })).runs,
  };
  const built = await newRun(table, companyId, found.runs, unflushed);
  const put = built === undefined ? { state: found, merges: 0 } : await putNewRun(context, companyId, found, built);
  if (put === undefined) return { entries: 0, left: unflushed.weight, merges: 0 };
  await sleep(settleMs);
  await removeUnflushed(table, companyId, unflushed);
  if (put.state !== found) await collectGarbage(table, companyId, head.manifest, runManifests, clock.now());
  // Only now: a merge may forget what was deleted, and so must find none of the older entries left.
  return { entries, left: 0, merges: put.merges + (await mergeAll(context, companyId, put.state)) };
}

interface Put {
  readonly state: IndexState;
  readonly merges: number;
}

/**
 * Takes the runs in at once that would be merged with the new one next: it need not be stored by itself, to be removed a
 * minute later. Not so where the oldest is among them. Undefined when another flush was faster.
 */
async function putNewRun(
  context: IndexContext,
  companyId: number,
  found: IndexState,
  built: BuiltRun,
): Promise<Put | undefined> {
  const { head, runs } = found;
  const sizes = [...runs, { rows: built.rows.length }];
  const from = isCompactionLocked(context, head) ? undefined : mergeable(sizes);
  const takesIn = from !== undefined && from > 0;
  const run = takesIn
    ? mergeRuns(
        [...(await runsToMerge(context.table, companyId, runs.slice(from))), inMemory(built, runs.length)],
        false,
      )
    : built;
  const state = await putRun(context, companyId, found, takesIn ? from : runs.length, run);
  return state === undefined ? undefined : { state, merges: takesIn ? 1 : 0 };
}

/** While a rebuild is about to replace runs, these must not be mixed with newer ones. */
const isCompactionLocked = ({ clock }: IndexContext, { mergesRestUntil }: Head): boolean =>
  mergesRestUntil > clock.now();

/** Gives how many merges there were. */
async function mergeAll(context: IndexContext, companyId: number, found: IndexState): Promise<number> {
  let state: IndexState | undefined = found;
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

/** Undefined where all that is unflushed had been flushed before. */
async function newRun(
  table: Table,
  companyId: number,
  runs: readonly Run[],
  unflushed: Unflushed,
): Promise<BuiltRun | undefined> {
  const runOverrides = await readRunOverrides(table, companyId, runs);
  const known = flushedVersions(runOverrides);
  const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
  const delta = await withSettledTexts(table, companyId, newest, known, unflushed.aside);
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

/** A read does not see a transaction as a whole: a text may come shortly after its entry. */
async function withSettledTexts(
  table: Table,
  companyId: number,
  newest: Delta,
  known: FlushedVersions,
  aside: ReadonlySet<string>,
): Promise<Delta> {
  for (let attempt = 1; ; attempt++) {
    const { delta, missing } = await withTexts(table, companyId, newest, known, aside);
    if (missing === 0) return delta;
    if (attempt === TEXT_TRIES) throw new Error(`${missing} unflushed entries of company ${companyId} lack texts`);
    await sleep(20 * attempt);
  }
}

/** Puts a new run in place of those from age `from` on. Undefined when another flush was faster. */
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

/** How much larger the newer runs are together than a run that they take in: each time, all its rows are written again. */
export const MERGE_RATIO = 5;

/**
 * Age of the first of the newest runs that are to be merged: one that the newer ones together have left behind. Sizes then grow
 * sixfold, with up to five runs of a size, so there are few, and a row is rewritten once for each step. The oldest, with most of the rows, is
 * taken in as soon as the others have its size: what they replace in it makes every cold read dearer.
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

/** A run that holds deletions and notes alone counts too. */
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
 * Whether an entry is left that is older than what the runs know, as a Query that is no snapshot may pass one by that its
 * flush should have removed. Forgetting the deletion that hides it would bring it back. The next flush takes it away.
 */
async function hasRemainders(
  table: Table,
  companyId: number,
  { prospectVersions, noteVersions }: FlushedVersions,
): Promise<boolean> {
  const { entries, notes, aside } = await readUnflushed(table, companyId);
  // Without its text an entry of the very version that the runs have is known by that alone.
  const least = aside.size > 0 ? 1 : 0;
  return (
    entries.some(({ id, version }) => version < prospectVersions.versionOf(id) + least) ||
    notes.some(({ noteId, version }) => version < noteVersions.versionOf(noteId) + least)
  );
}

/**
 * A warm function remembers how many entries have come since its last flush, so that it looks into the table only when there is
 * something to do. What a cold one has missed it finds at its first look. A company whose flush failed holds up no other one:
 * its first record is reported after all had their turn.
 */
export function flushStream(
  context: () => IndexContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const waiting = new Map<number, number>();
  return async ({ Records }) => {
    const companies = Map.groupBy(Records, companyOf);
    const failed: string[] = [];
    for (const [companyId, records] of companies) {
      const added = records.reduce(
        (weight, { dynamodb }) =>
          weight + weightOf(dynamodb?.NewImage === undefined ? {} : itemOfImage(dynamodb.NewImage)),
        0,
      );
      const entries = (waiting.get(companyId) ?? FLUSH_ENTRIES) + added;
      waiting.set(companyId, entries);
      if (entries < FLUSH_ENTRIES) continue;
      try {
        waiting.set(companyId, await withLogContext({ companyId }, () => flushCompany(context(), companyId)));
      } catch (error) {
        log.error("index not flushed", { companyId, ...errorFields(error) });
        failed.push(records[0]?.dynamodb?.SequenceNumber ?? "");
      }
    }
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** Gives the weight of the entries that are left. */
async function flushCompany(context: IndexContext, companyId: number): Promise<number> {
  const { left, ...done } = await flush(context, companyId);
  if (done.entries > 0) log.info("index flushed", done);
  return left;
}

/** The partition of the entry is `C#<company>#X`. */
function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = /^C#(\d+)#X$/.exec(dynamodb?.Keys?.pk?.S ?? "") ?? [];
  if (companyId === undefined) throw new Error("a record is no entry of an index");
  return Number(companyId);
}
