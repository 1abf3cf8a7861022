/**
 * The manifest lists the runs and segments of one version of a company's index. The head of the index has the ids of the runs. Each run has
 * a run manifest, which is written once and lists the segments of the run.
 */
import * as z from "zod/mini";

import { Zone } from "#shared/company-index/criteria.ts";
import { compress, decompress, IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { Consistency } from "#shared/db/batch.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { type Condition, equals, missing } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Version number of the format of the head, the run manifests and all pieces of the index. Each incompatible change needs a new number. */
export const INDEX_FORMAT = 1;

/** Throws IndexUnreadable for the format of another release, because this code would misread that format. */
export function checkFormat(label: string, format: number): void {
  if (format === INDEX_FORMAT) return;
  throw new IndexUnreadable(`${label} has format ${format}, and only format ${INDEX_FORMAT} is supported`);
}

/** Number of items that store a piece of the index; 0 if the piece is empty. */
const Parts = z.int();

export const SegmentEntry = z.object({
  id: z.string(),
  rows: z.int(),
  parts: z.object({ main: Parts, geo: Parts, text: Parts }),
  /** Stored size of all parts, in bytes. */
  bytes: z.int(),
  zone: Zone,
});
export type SegmentEntry = z.infer<typeof SegmentEntry>;

const Content = z.object({
  /** Number of rows in all segments, including rows that newer runs replace. */
  rows: z.int(),
  overrides: Parts,
  looseNotes: Parts,
  segments: z.array(SegmentEntry),
});

export interface Run extends z.infer<typeof Content> {
  readonly id: string;
  /** The version overrides of the run, if they are small enough for the run manifest. Larger overrides are stored in a separate item. */
  readonly fewOverrides?: Uint8Array | undefined;
}

/** The runs of the index, oldest first. The position of a run is its age. */
export interface Manifest {
  readonly runs: readonly Run[];
}

/** The item that describes a run. Its stored `type` is `runSheet`. */
export interface RunManifest {
  readonly runId: string;
  readonly format: number;
  /** Time when the run was published, in milliseconds since the epoch. */
  readonly at: number;
  /** Ids of the runs that this run replaced. */
  readonly replaced: readonly string[];
  readonly bytes: Uint8Array;
  readonly fewOverrides: Uint8Array | undefined;
}

export function runManifestOf(run: Run, at: number, replaced: readonly string[]): RunManifest {
  const { id, rows, overrides, looseNotes, segments, fewOverrides } = run;
  const bytes = compress(Buffer.from(JSON.stringify({ rows, overrides, looseNotes, segments })));
  return { runId: id, format: INDEX_FORMAT, at, replaced, bytes, fewOverrides };
}

/** Throws IndexUnreadable if the run manifest is damaged or has an unknown format. */
export function runOf(companyId: number, { runId, format, bytes, fewOverrides }: RunManifest): Run {
  const label = `the manifest of run ${runId} of company ${companyId}`;
  checkFormat(label, format);
  const content = decompress(label, bytes, (json) => Content.parse(JSON.parse(Buffer.from(json).toString())));
  return { id: runId, ...content, fewOverrides };
}

/** The `type` attribute of the head's item. */
export const HEAD_TYPE = "indexHead";

const Head = z.object({
  /** Number of changes of the index so far; 0 means that no index exists yet. */
  version: z._default(z.int(), 0),
  /** Ids of the current runs, oldest first. */
  manifest: z._default(z.array(z.string()), []),
  /** Number of changes of statuses, tags and users so far. Only the transactions of those changes write this attribute. */
  dictionaryVersion: z._default(z.int(), 0),
  /**
   * Time when the compaction lock expires, in milliseconds since the epoch. The attribute has an old name, because renaming it would change
   * stored data.
   */
  mergesRestUntil: z._default(z.int(), 0),
  /** Id of the rebuild that holds the compaction lock. */
  rebuildId: z._default(z.nullable(z.string()), null),
});
export type Head = z.infer<typeof Head>;

const Stored = z.object({ format: z._default(z.int(), INDEX_FORMAT) });

/** Reads the head from its item. Throws IndexUnreadable if a later release wrote the head. */
export function readHead(item: Item | undefined): Head {
  checkFormat("the head of the index", Stored.parse(item ?? {}).format);
  return Head.parse(item ?? {});
}

/** Raises the dictionary version in the head. A read of the index therefore learns whether the names in memory are current. */
export const namesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { dictionaryVersion: 1 } },
});

/** The condition fails if a process has moved the head since `head` was read. */
export const isUnmoved = ({ version }: Head): Condition =>
  version === 0 ? missing("version") : equals("version", version);

/** Writes the move of the head, and possibly other items in the same transaction. The move must be the first write of the transaction. */
export type Commit = (move: Write) => Promise<unknown>;

/**
 * Moves the head to `manifest`. Returns undefined after the move. Returns the current head if another process moved the head first, or if
 * this move succeeded, its reply was lost and later moves followed. Writes only version and manifest, because other processes change the
 * other attributes at the same time.
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

/** Run manifests by the id of their run. */
export type RunManifests = ReadonlyMap<string, RunManifest>;

export const runManifestItem = (companyId: number, { runId, fewOverrides, ...rest }: RunManifest): Key & Item => ({
  ...keys.runManifest(companyId, runId),
  type: "runSheet",
  ...rest,
  ...(fewOverrides !== undefined && { fewOverrides }),
});

/** The attributes that the run manifests of all formats have. */
function runManifestIn(item: Item): RunManifest {
  const { sk, fewOverrides, ...rest } = RunManifestItem.parse(item);
  return { runId: sk, ...rest, fewOverrides };
}

/**
 * Reads all run manifests of the company, namely those of current runs, of recently replaced runs and of runs that were never published.
 */
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

/** Run manifests and runs that the caller already has in memory. */
export interface AtHand {
  readonly runManifests?: RunManifests | undefined;
  readonly known?: readonly Run[];
}

/** Reads the runs that the caller does not have. Throws IndexUnreadable if a run manifest is missing, damaged, or of an unknown format. */
export async function readManifest(
  table: Table,
  companyId: number,
  runIds: readonly string[],
  { runManifests = new Map(), known = [] }: AtHand = {},
): Promise<Manifest> {
  const runs = new Map(known.map((run) => [run.id, run]));
  const isAtHand = (id: string): boolean => runs.has(id) || runManifests.has(id);
  // A damaged head may contain an id twice, and DynamoDB rejects a batch with duplicate keys.
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
