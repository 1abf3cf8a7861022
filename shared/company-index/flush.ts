/** The flush: unflushed entries become a run of segments, and runs that have grown alike become one. */
import { setTimeout as sleep } from "node:timers/promises";
import { arranged } from "#shared/company-index/arrange.ts";
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import type { Head } from "#shared/company-index/head.ts";
import type { Manifest, Run } from "#shared/company-index/manifest.ts";
import { mergeRuns, type RunToMerge } from "#shared/company-index/merge.ts";
import {
  discardRun,
  type IndexWorld,
  isEmptyRun,
  type NewRun,
  publish,
  storeRun,
} from "#shared/company-index/publish.ts";
import { isTombstone } from "#shared/company-index/row.ts";
import { readAsides, readSegments } from "#shared/company-index/run-pieces.ts";
import { readManifest } from "#shared/company-index/store.ts";
import { newestUnflushed, type RunsInView, runsInView } from "#shared/company-index/view.ts";
import type { Table } from "#shared/db/table.ts";

/** Fewer unflushed entries are left where they are: a read pays for their few kilobytes, a flush writes six items at least. */
export const FLUSH_ENTRIES = 128;

/** Queries that were under way when the head moved have read what is removed then. */
const SETTLE_MS = 250;

export interface Flushed {
  /** Entries that went into segments, or had been there before. */
  readonly entries: number;
  /** Entries that were left, for they are few or another flush has them. */
  readonly left: number;
  readonly merges: number;
}

/** Safe to repeat, to kill at any point and to run twice at once: the later one finds less or nothing to do. */
export async function flush(
  world: IndexWorld,
  companyId: number,
  { least = FLUSH_ENTRIES, settleMs = SETTLE_MS } = {},
): Promise<Flushed> {
  const unflushed = await readUnflushed(world.table, companyId);
  const entries = unflushed.keys.length;
  if (entries < least) return { entries: 0, left: entries, merges: 0 };
  let holding: Holding | undefined = {
    head: unflushed.head,
    manifest: await readManifest(world.table, companyId, unflushed.head.manifest),
  };
  const run = await newRun(world.table, companyId, holding.manifest, unflushed);
  if (run !== undefined) holding = await putRun(world, companyId, holding, holding.manifest.runs.length, run);
  if (holding === undefined) return { entries: 0, left: entries, merges: 0 };
  await sleep(settleMs);
  await world.table.batchRemove(unflushed.keys);
  // Only now: a merge may forget what was deleted, and so must find none of the older entries left.
  return { entries, left: 0, merges: await mergeAll(world, companyId, holding) };
}

/** Gives how many merges there were: none while a rebuild is about to replace runs, which must not be mixed with newer ones. */
async function mergeAll(world: IndexWorld, companyId: number, found: Holding): Promise<number> {
  let holding: Holding | undefined = found;
  for (let merges = 0; ; merges++) {
    if (holding.head.mergesRestUntil > world.clock.now()) return merges;
    const from = mergeable(holding.manifest);
    if (from === undefined) return merges;
    holding = await merge(world, companyId, holding, from);
    if (holding === undefined) return merges;
  }
}

interface Holding {
  readonly head: Head;
  readonly manifest: Manifest;
}

/** Undefined where all that is unflushed had been flushed before. */
async function newRun(
  table: Table,
  companyId: number,
  manifest: Manifest,
  unflushed: Unflushed,
): Promise<NewRun | undefined> {
  const asides = await readAsides(table, companyId, manifest.runs);
  const delta = newestUnflushed(runsInView(asides), unflushed.entries, unflushed.notes);
  const prospects = [...delta.prospects.values()];
  const notes = [...delta.notes.values()];
  if (prospects.length + notes.length === 0) return undefined;
  return {
    rows: arranged(prospects.flatMap((entry) => (isTombstone(entry) ? [] : [{ row: entry, notes: [] }]))),
    looseNotes: notes.flatMap(({ text, ...note }) => (text === null ? [] : [{ ...note, text }])),
    prospects,
    notes: notes.map(({ noteId, version }) => ({ id: noteId, version })),
  };
}

/** Puts a new run in place of those from age `from` on. Undefined when another flush was faster. */
async function putRun(
  world: IndexWorld,
  companyId: number,
  { head, manifest }: Holding,
  from: number,
  built: NewRun,
): Promise<Holding | undefined> {
  const run = await storeRun(world.table, companyId, built);
  const staying = manifest.runs.slice(0, from);
  const next: Manifest = { runs: isEmptyRun(run) ? staying : [...staying, run] };
  const moved = await publish(world, companyId, head, next);
  if (moved !== undefined) return { head: moved, manifest: next };
  await discardRun(world.table, companyId, run);
  return undefined;
}

/** How much larger the newer runs are together than a run that they take in: each time, all its rows are written again. */
const CAUGHT_UP = 3;

/**
 * Age of the first of the newest runs that are to be merged: one that the newer ones together have left behind. Sizes then
 * quadruple from run to run, so there are few, and a row is rewritten once for each step. The oldest, with most of the rows, is
 * taken in as soon as the others have its size: what they replace in it makes every cold read dearer.
 */
export function mergeable({ runs }: Manifest): number | undefined {
  let newer = 0;
  let first: number | undefined;
  for (let age = runs.length - 1; age >= 0; age--) {
    const size = sizeOf(runs[age]);
    if (newer > 0 && newer >= size * (age === 0 ? 1 : CAUGHT_UP)) first = age;
    newer += size;
  }
  return first;
}

/** A run that holds deletions and notes alone counts too. */
const sizeOf = (run: Run | undefined): number => Math.max(1, run?.rows ?? 0);

async function merge(
  world: IndexWorld,
  companyId: number,
  holding: Holding,
  from: number,
): Promise<Holding | undefined> {
  const merging = holding.manifest.runs.slice(from);
  const asides = await readAsides(world.table, companyId, merging);
  if (from === 0 && (await hasRemainders(world.table, companyId, runsInView(asides)))) return undefined;
  const toMerge: RunToMerge[] = [];
  for (const [age, run] of merging.entries()) {
    const aside = asides[age];
    if (aside === undefined) throw new Error("a run without what stands beside it");
    toMerge.push({ age, segments: await readSegments(world.table, companyId, run), ...aside });
  }
  return putRun(world, companyId, holding, from, mergeRuns(toMerge, from === 0));
}

/**
 * Whether an entry is left that is older than what the runs know, as a Query that is no snapshot may pass one by that its
 * flush should have removed. Forgetting the deletion that hides it would bring it back. The next flush takes it away.
 */
async function hasRemainders(
  table: Table,
  companyId: number,
  { prospectVersions, noteVersions }: RunsInView,
): Promise<boolean> {
  const { entries, notes } = await readUnflushed(table, companyId);
  return (
    entries.some(({ id, version }) => version < prospectVersions.versionOf(id)) ||
    notes.some(({ noteId, version }) => version < noteVersions.versionOf(noteId))
  );
}
