/**
 * The manifest: the runs and segments that make up a company's index at one version of it. It stands in parts: the head lists
 * runs by their ids, and each run has a sheet, written once, that says of which segments it consists.
 */
import * as z from "zod/mini";

import { Zone } from "#shared/company-index/criteria.ts";
import { compress, decompress, IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { Consistency } from "#shared/db/batch.ts";
import { type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Of the head, the sheets and the pieces that they lead to. Whatever is written in another way has another number. */
export const INDEX_FORMAT = 1;

/** Throws IndexUnreadable: what a later version of the service has stored must not be taken for something else. */
export function checkFormat(label: string, format: number): void {
  if (format === INDEX_FORMAT) return;
  throw new IndexUnreadable(`${label} has format ${format}, and only format ${INDEX_FORMAT} is known here`);
}

/** How many items of the table a piece of the index takes; 0: there is nothing of it. */
const Parts = z.int();

export const SegmentEntry = z.object({
  id: z.string(),
  rows: z.int(),
  parts: z.object({ main: Parts, geo: Parts, text: Parts }),
  /** Stored size of all its parts. */
  bytes: z.int(),
  zone: Zone,
});
export type SegmentEntry = z.infer<typeof SegmentEntry>;

const Content = z.object({
  /** Rows of its segments, dead ones included. */
  rows: z.int(),
  overrides: Parts,
  looseNotes: Parts,
  segments: z.array(SegmentEntry),
});

export interface Run extends z.infer<typeof Content> {
  readonly id: string;
  /** Overrides that are few: they stand in the sheet and take no part of their own. */
  readonly fewOverrides?: Uint8Array | undefined;
}

/** Oldest first: a run's place is its age. */
export interface Manifest {
  readonly runs: readonly Run[];
}

/** What stands in the table for a run, beside its pieces. */
export interface RunManifest {
  readonly runId: string;
  readonly format: number;
  /** When the run took the place of others, in milliseconds since the epoch. */
  readonly at: number;
  /** Ids of the runs whose place it took. */
  readonly replaced: readonly string[];
  readonly bytes: Uint8Array;
  readonly fewOverrides: Uint8Array | undefined;
}

export function runManifestOf(run: Run, at: number, replaced: readonly string[]): RunManifest {
  const { id, rows, overrides, looseNotes, segments, fewOverrides } = run;
  const bytes = compress(Buffer.from(JSON.stringify({ rows, overrides, looseNotes, segments })));
  return { runId: id, format: INDEX_FORMAT, at, replaced, bytes, fewOverrides };
}

/** Throws IndexUnreadable where it is damaged, or of a format that is not known. */
export function runOf(companyId: number, { runId, format, bytes, fewOverrides }: RunManifest): Run {
  const label = `the sheet of run ${runId} of company ${companyId}`;
  checkFormat(label, format);
  const content = decompress(label, bytes, (json) => Content.parse(JSON.parse(Buffer.from(json).toString())));
  return { id: runId, ...content, fewOverrides };
}

/** Of the head's item. */
export const HEAD_TYPE = "indexHead";

const Head = z.object({
  /** Counts the changes of the index; 0: there is none yet. */
  version: z._default(z.int(), 0),
  /** Ids of the runs that hold, oldest first: each has a sheet. */
  manifest: z._default(z.array(z.string()), []),
  /** Counts the changes of the company's names. Written by those changes alone. */
  dictionaryVersion: z._default(z.int(), 0),
  /** Until then (milliseconds since the epoch) no runs are merged, for a rebuild is about to replace those that there are. */
  mergesRestUntil: z._default(z.int(), 0),
  /** The rebuild that merges rest for. */
  rebuildId: z._default(z.nullable(z.string()), null),
});
export type Head = z.infer<typeof Head>;

const Stored = z.object({ format: z._default(z.int(), INDEX_FORMAT) });

/** Throws IndexUnreadable where a later version of the service has written it. */
export function readHead(item: Item | undefined): Head {
  checkFormat("the head of the index", Stored.parse(item ?? {}).format);
  return Head.parse(item ?? {});
}

/** A read of the index learns thereby whether the names that it has in memory still hold. */
export const namesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { dictionaryVersion: 1 } },
});

/** Holds as long as nobody has moved the head since it was read. */
export const isUnmoved = ({ version }: Head): Condition =>
  version === 0 ? missing("version") : equals("version", version);

/** Makes a move of the head, and maybe what goes with it: the move is the first of the writes. */
export type Commit = (move: Write) => Promise<unknown>;

/**
 * Gives undefined when it is done, else the head as it stands: somebody else moved it first, or this very move was done,
 * its reply lost, and others have moved the head since. Writes no more than version and manifest: what else stands in the
 * head, others change at the same time.
 */
export async function moveHead(
  table: Table,
  companyId: number,
  from: Head,
  { version, manifest }: Pick<Head, "version" | "manifest">,
  commit?: Commit,
): Promise<Head | undefined> {
  const set = { type: HEAD_TYPE, format: INDEX_FORMAT, version, manifest };
  const move = { update: keys.indexHead(companyId), change: { set }, when: isUnmoved(from) };
  try {
    await (commit === undefined ? table.write(move) : commit(move));
    return undefined;
  } catch (error) {
    const failed = error instanceof ConditionFailed ? error.failed.find(({ index }) => index === 0) : undefined;
    if (failed === undefined) throw error;
    return readHead(failed.item);
  }
}

const RunManifestItem = z.object({
  sk: z.string(),
  format: z.int(),
  at: z.int(),
  replaced: z.array(z.string()),
  bytes: z.instanceof(Uint8Array),
  fewOverrides: z.optional(z.instanceof(Uint8Array)),
});

/** By the ids of their runs. */
export type RunManifests = ReadonlyMap<string, RunManifest>;

export const runManifestItem = (companyId: number, { runId, fewOverrides, ...rest }: RunManifest): Key & Item => ({
  ...keys.runManifest(companyId, runId),
  type: "runSheet",
  ...rest,
  ...(fewOverrides !== undefined && { fewOverrides }),
});

/** Whatever its format is, these fields are in it. */
function runManifestIn(item: Item): RunManifest {
  const { sk, fewOverrides, ...rest } = RunManifestItem.parse(item);
  return { runId: sk, ...rest, fewOverrides };
}

/** All that there are: of the runs that hold, of those that they have replaced lately, and of some that never came to hold. */
export async function readRunManifests(
  table: Table,
  companyId: number,
  consistency: Consistency,
): Promise<RunManifests> {
  const runManifests = new Map<string, RunManifest>();
  for await (const item of table.query({ ...keys.runManifests(companyId), consistency })) {
    const runManifest = runManifestIn(item);
    runManifests.set(runManifest.runId, runManifest);
  }
  return runManifests;
}

/** What is known already when a manifest is read. */
export interface AtHand {
  readonly runManifests?: RunManifests | undefined;
  readonly known?: readonly Run[];
}

/**
 * The runs with these ids: what is not at hand is read. Throws IndexUnreadable where a sheet is missing, damaged, or of a
 * format that is not known.
 */
export async function readManifest(
  table: Table,
  companyId: number,
  runIds: readonly string[],
  { runManifests = new Map(), known = [] }: AtHand = {},
): Promise<Manifest> {
  const runs = new Map(known.map((run) => [run.id, run]));
  const isAtHand = (id: string): boolean => runs.has(id) || runManifests.has(id);
  // A damaged head may name a run twice, and a batch may not.
  const wanted = [...new Set(runIds.filter((id) => !isAtHand(id)))].map((id) => keys.runManifest(companyId, id));
  const items = wanted.length === 0 ? [] : await table.batchGet(wanted);
  const read = new Map(items.map(runManifestIn).map((runManifest) => [runManifest.runId, runManifest]));
  const runOfId = (id: string): Run =>
    runs.get(id) ?? runOf(companyId, runManifests.get(id) ?? read.get(id) ?? noRunManifest(companyId, id));
  return { runs: runIds.map(runOfId) };
}

function noRunManifest(companyId: number, runId: string): never {
  throw new IndexUnreadable(`the index of company ${companyId} lacks the sheet of run ${runId}`);
}
