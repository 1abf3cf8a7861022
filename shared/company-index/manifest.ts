/**
 * The manifest lists the current runs of a company's search index. A run is a sorted batch of rows that never changes, as in an LSM tree (a
 * data structure of many databases). Flushes, merges, imports and rebuilds add runs. The head row of the index contains the ids of the
 * runs. Each run has a run manifest, which is written once and lists the run's segments (pieces of up to 4 096 rows).
 */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";

import { Zone } from "#shared/company-index/criteria.ts";
import { compress, decompress, IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { Consistency } from "#shared/db/batch.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

/**
 * Version of the format of all stored data of the index. Increase it with each incompatible change, so that other releases refuse to read
 * the data.
 */
export const INDEX_FORMAT = 1;

/** Throws IndexUnreadable if another release has written the data in another format, because this release would misread it. */
function checkFormat(label: string, format: number): void {
  if (format === INDEX_FORMAT) return;
  const cause = format > INDEX_FORMAT ? "a later release has written it" : "an earlier release has written it";
  throw new IndexUnreadable(`${label} has format ${format}, and this release reads format ${INDEX_FORMAT}: ${cause}`);
}

/**
 * Number of table items that store a piece of data, or 0 if the piece is empty. A large piece needs several items, because DynamoDB limits
 * an item to 400 KB.
 */
const Parts = z.int();

export const SegmentEntry = z.object({
  id: z.string(),
  rows: z.int(),
  parts: z.object({ main: Parts, geo: Parts, text: Parts }),
  /** Total bytes of the segment's columns after compression. */
  bytes: z.int(),
  zone: Zone,
});
export type SegmentEntry = z.infer<typeof SegmentEntry>;

export const RunContent = z.object({
  /** Number of rows in all segments of the run, including rows that are outdated because a newer run has a later version. */
  rows: z.int(),
  overrides: Parts,
  looseNotes: Parts,
  segments: z.array(SegmentEntry),
});

export interface Run extends z.infer<typeof RunContent> {
  readonly id: string;
  /**
   * The version overrides of the run (see `Overrides`), if they are small. With them, readers find out which rows of older runs are
   * outdated. Larger overrides are in separate items.
   */
  readonly fewOverrides?: Uint8Array | undefined;
}

/**
 * The current runs of a search index, sorted from the oldest to the newest. The position of a run in this list is called its age, although
 * a higher age means a newer run.
 */
export interface Manifest {
  readonly runs: readonly Run[];
}

/** The table item that describes one run of the index. Its `type` attribute is `runManifest`. */
export interface RunManifest {
  readonly runId: string;
  readonly format: number;
  /** The time at which the run was added to the index, in milliseconds since 1970. */
  readonly at: number;
  /** Ids of the older runs that this run has replaced. Garbage collection deletes them later. */
  readonly replaced: readonly string[];
  readonly bytes: Uint8Array;
  readonly fewOverrides: Uint8Array | undefined;
}

export function runManifestOf(run: Run, at: number, replaced: readonly string[]): RunManifest {
  const { id, rows, overrides, looseNotes, segments, fewOverrides } = run;
  const bytes = compress(Buffer.from(JSON.stringify({ rows, overrides, looseNotes, segments })));
  return { runId: id, format: INDEX_FORMAT, at, replaced, bytes, fewOverrides };
}

/** Decodes a run manifest. Throws IndexUnreadable if it is damaged or if its format is unknown. */
export function runOf(companyId: number, { runId, format, bytes, fewOverrides }: RunManifest): Run {
  const label = `the manifest of run ${runId} of company ${companyId}`;
  checkFormat(label, format);
  const content = decompress(label, bytes, (json) => RunContent.parse(JSON.parse(Buffer.from(json).toString())));
  return { id: runId, ...content, fewOverrides };
}

export const HEAD_TYPE = "indexHead";

export const Head = z.object({
  /**
   * Incremented for optimistic locking with each change of the list of runs, each new chunk of the change log, and each acquisition of the
   * compaction lock. 0 means that the company has no index yet.
   */
  version: z._default(z.int(), 0),
  manifest: z._default(z.array(z.string()), []),
  /**
   * Number of changes of statuses, tags and users so far. Readers compare it with their caches, to know whether the cached names are
   * current.
   */
  dictionaryVersion: z._default(z.int(), 0),
  /**
   * The time at which the compaction lock expires, in milliseconds since 1970. The lock prevents merges of runs during a rebuild. Do not
   * rename the attribute, because stored rows have this name.
   */
  mergesRestUntil: z._default(z.int(), 0),
  /** The id of the rebuild that holds the compaction lock. */
  rebuildId: z._default(z.nullable(z.string()), null),
  /** The version of the newest chunk of the change log. 0 if there is none. */
  lastChunk: z._default(z.int(), 0),
  /** The time of the last flush, in milliseconds since 1970. 0 if it is not known. */
  flushedAt: z._default(z.int(), 0),
  /**
   * Identifies the change log. A restore of the company's rows from a backup sets a new id, because no chunk of the change log contains
   * the changes that the restore makes.
   */
  logId: z._default(z.string(), ""),
  /**
   * Number of changes of territories so far. Readers compare it with the version of their cached polygons. The attribute is named after
   * polygons, because it first counted only changes of polygons.
   */
  polygonsVersion: z._default(z.int(), 0),
});
export type Head = z.infer<typeof Head>;

const Stored = z.object({ format: z._default(z.int(), INDEX_FORMAT) });

/**
 * Parses the head row, which lists the runs. Returns an empty head if the row does not exist. Throws IndexUnreadable if another release
 * has written the row in a different format.
 */
export function readHead(item: Item | undefined): Head {
  checkFormat("the head of the index", Stored.parse(item ?? {}).format);
  return Head.parse(item ?? {});
}

/**
 * Returns the write that increments `dictionaryVersion` in the head row. Every change of a status, tag or user includes this write, so that
 * readers notice that their cached names are outdated.
 */
export const namesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { dictionaryVersion: 1 } },
});

/**
 * Returns the write that increments `polygonsVersion` in the head row. Every transaction that changes territories includes this write once,
 * so that readers notice that their cached territories are outdated.
 */
export const territoriesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { polygonsVersion: 1 } },
});

/** Returns the write that begins a new change log for the company. Clients with a copy of the data must then read all data again. */
export const restartOfLog = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE, logId: randomBytes(6).toString("base64url") } },
});

/**
 * Returns the condition of an optimistic lock. It fails if another process has changed the version of the head row since `head` was read.
 */
export const isUnmoved = ({ version }: Head): Condition =>
  version === 0 ? missing("version") : equals("version", version);

/**
 * Executes the writes `moves`: the update of the head row and the rows of the change log. It may execute other writes in the same
 * transaction, but `moves` must come first, because `moveHead` looks for the failed condition of the head row at index 0.
 */
export type Commit = (moves: readonly Write[]) => Promise<unknown>;

type MovedHead = Pick<Head, "version" | "manifest"> & Partial<Pick<Head, "lastChunk" | "flushedAt">>;

/**
 * Stores the list of runs in the head row, if the row has not changed since `from` was read. Returns undefined on success, and the current
 * head row if the row has changed. Any other error is thrown. If the row has changed, the caller must check whether it already contains the
 * list, because the response to a successful write may have been lost. Other attributes of the row are not set, because other processes
 * change them at the same time.
 */
export async function moveHead(
  table: Table,
  companyId: number,
  from: Head,
  { manifest, lastChunk, flushedAt, version }: MovedHead,
  { chunk = [], commit }: { readonly chunk?: readonly Write[]; readonly commit?: Commit | undefined } = {},
): Promise<Head | undefined> {
  const log = { lastChunk, flushedAt };
  const set = { type: HEAD_TYPE, format: INDEX_FORMAT, version, manifest, ...log };
  const move = { update: keys.indexHead(companyId), change: { set }, when: isUnmoved(from) };
  try {
    if (commit !== undefined) await commit([move, ...chunk]);
    else if (chunk.length > 0) await table.transact([move, ...chunk]);
    else await table.write(move);
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

export type RunManifests = ReadonlyMap<string, RunManifest>;

export const runManifestItem = (companyId: number, { runId, fewOverrides, ...rest }: RunManifest): Key & Item => ({
  ...keys.runManifest(companyId, runId),
  type: "runManifest",
  ...rest,
  ...(fewOverrides !== undefined && { fewOverrides }),
});

/**
 * Parses the item of a run manifest. Its attributes are the same in every format of the index, so garbage collection can also read the
 * manifests of other releases.
 */
function runManifestIn(item: Item): RunManifest {
  const { sk, fewOverrides, ...rest } = RunManifestItem.parse(item);
  return { runId: sk, ...rest, fewOverrides };
}

/**
 * Reads all run manifests of the company: those of current runs, of recently replaced runs, and of runs that were never added to the index.
 */
export async function readRunManifests(
  table: Reads,
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

/** The run manifests and runs that the caller has already read. */
export interface AtHand {
  readonly runManifests?: RunManifests | undefined;
  readonly known?: readonly Run[];
}

/**
 * Returns the manifest with the runs `runIds`. Reads only the run manifests that the caller does not have yet. Throws IndexUnreadable if a
 * run manifest is missing, is damaged, or has an unknown format.
 */
export async function readManifest(
  table: Reads,
  companyId: number,
  runIds: readonly string[],
  { runManifests = new Map(), known = [] }: AtHand = {},
): Promise<Manifest> {
  const runs = new Map(known.map((run) => [run.id, run]));
  const isAtHand = (id: string): boolean => runs.has(id) || runManifests.has(id);
  // A damaged head row may contain an id twice, and DynamoDB rejects a batch with equal keys. The set removes equal ids.
  const wanted = [...new Set(runIds.filter((id) => !isAtHand(id)))].map((id) => keys.runManifest(companyId, id));
  const items = wanted.length === 0 ? [] : await table.batchGet(wanted);
  const read = new Map(items.map(runManifestIn).map((runManifest) => [runManifest.runId, runManifest]));
  const runOfId = (id: string): Run =>
    runs.get(id) ?? runOf(companyId, runManifests.get(id) ?? read.get(id) ?? noRunManifest(companyId, id));
  return { runs: runIds.map(runOfId) };
}

function noRunManifest(companyId: number, runId: string): never {
  throw new IndexUnreadable(`the index of company ${companyId} lacks the manifest of run ${runId}`);
}
