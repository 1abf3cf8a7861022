/** The part manifests and the head of a company index. As in an LSM tree, parts never change: they are only added and replaced. */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";

import { Zone } from "#shared/company-index/criteria.ts";
import { compress, decompress, IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Condition, equals, type Item, missing, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Consistency, Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Increase this number with each incompatible change of the stored data. Releases with another number refuse to read the data. */
export const INDEX_FORMAT = 2;

/** Throws IndexUnreadable for another format, which this release would misread. */
function checkFormat(label: string, format: number): void {
  if (format === INDEX_FORMAT) return;
  const cause = format > INDEX_FORMAT ? "a later release has written it" : "an earlier release has written it";
  throw new IndexUnreadable(`${label} has format ${format}, and this release reads format ${INDEX_FORMAT}: ${cause}`);
}

/** Number of items that store a piece (see pieces.ts), or 0 if it is empty. DynamoDB limits an item to 400 KB. */
const Count = z.int();

export const SegmentEntry = z.object({
  id: z.string(),
  rows: z.int(),
  counts: z.object({ main: Count, geo: Count, text: Count }),
  zone: Zone,
});
export type SegmentEntry = z.infer<typeof SegmentEntry>;

export const PartContent = z.object({
  /** Number of rows, including those of which a newer part has a later version. */
  rows: z.int(),
  overrides: Count,
  looseNotes: Count,
  segments: z.array(SegmentEntry),
});

export interface Part extends z.infer<typeof PartContent> {
  readonly id: string;
  /** The version overrides of the part (see `Overrides`), if they are small. Larger overrides are in separate items. */
  readonly fewOverrides?: Uint8Array | undefined;
}

/** The parts of an index, from the oldest to the newest. The position in this list is the part's age: a higher age means a newer part. */
export interface Manifest {
  readonly parts: readonly Part[];
}

const PartManifestItem = z.object({
  sk: z.string(),
  format: z.int(),
  /** The time at which the part was added, in milliseconds since 1970. */
  at: z.int(),
  /** The older parts that this part has replaced. Garbage collection deletes them later. */
  replaced: z.array(z.string()),
  bytes: z.instanceof(Uint8Array),
  fewOverrides: z.optional(z.instanceof(Uint8Array)),
});

export interface PartManifest extends Omit<z.infer<typeof PartManifestItem>, "sk"> {
  readonly partId: string;
}

export function partManifestItem(companyId: number, part: Part, at: number, replaced: readonly string[]): Key & Item {
  const { id, rows, overrides, looseNotes, segments, fewOverrides } = part;
  const bytes = compress(Buffer.from(JSON.stringify({ rows, overrides, looseNotes, segments })));
  const own = { type: "partManifest", format: INDEX_FORMAT, at, replaced, bytes, fewOverrides };
  return { ...keys.partManifest(companyId, id), ...own };
}

/** Throws IndexUnreadable if the item is damaged or if its format is unknown. */
export function partOf(companyId: number, { partId, format, bytes, fewOverrides }: PartManifest): Part {
  const label = `the manifest of part ${partId} of company ${companyId}`;
  checkFormat(label, format);
  const content = decompress(label, bytes, (json) => PartContent.parse(JSON.parse(Buffer.from(json).toString())));
  return { id: partId, ...content, fewOverrides };
}

export const HEAD_TYPE = "indexHead";

export const Head = z.object({
  /** Increases with each new list of parts, chunk of the change log and lock of a rebuild. 0 means that there is no index yet. */
  version: z._default(z.int(), 0),
  manifest: z._default(z.array(z.string()), []),
  /** Number of changes of statuses, tags and users. Readers compare it with the version of their cached names. */
  dictionaryVersion: z._default(z.int(), 0),
  /** Until this time (in milliseconds since 1970), a rebuild holds the compaction lock, so no parts are merged. */
  lockedUntil: z._default(z.int(), 0),
  /** The id of the rebuild that holds the compaction lock. */
  rebuildId: z._default(z.nullable(z.string()), null),
  /** The version of the newest chunk, or 0. */
  lastChunk: z._default(z.int(), 0),
  /** The time of the last flush in milliseconds since 1970, or 0 if it is not known. */
  flushedAt: z._default(z.int(), 0),
  /** Identifies the change log. A restore from a backup sets a new id, because no chunk contains the changes of the restore. */
  logId: z._default(z.string(), ""),
  /** Number of changes of territories. Readers compare it with the version of their cached territories. */
  territoriesVersion: z._default(z.int(), 0),
});
export type Head = z.infer<typeof Head>;

const Stored = z.object({ format: z._default(z.int(), INDEX_FORMAT) });

/** Returns an empty head if the row does not exist. Throws IndexUnreadable for another format. */
export function readHead(item: Item | undefined): Head {
  checkFormat("the head of the index", Stored.parse(item ?? {}).format);
  return Head.parse(item ?? {});
}

/** Add this write to each change of a status, tag or user. Readers then notice that their cached names are outdated. */
export const namesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { dictionaryVersion: 1 } },
});

/** Add this write once to each transaction that changes territories. Readers then notice that their cached territories are outdated. */
export const territoriesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { territoriesVersion: 1 } },
});

/** Begins a new change log. Clients with a copy of the data must then read all data again. */
export const restartOfLog = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE, logId: randomBytes(6).toString("base64url") } },
});

export const isUnmoved = ({ version }: Head): Condition =>
  version === 0 ? missing("version") : equals("version", version);

/** Executes `moves` as the first writes of a transaction, because `moveHead` looks for a failed condition at index 0. */
export type Commit = (moves: readonly Write[]) => Promise<unknown>;

type MovedHead = Pick<Head, "version" | "manifest"> & Partial<Pick<Head, "lastChunk" | "flushedAt">>;

/**
 * Stores the list of parts if the head has not changed since `from`. Otherwise returns the current head. The caller must then check whether
 * the current head already contains the list, because the response to a successful write may have been lost. This function sets no other
 * attributes of the head, because other processes change those at the same time.
 */
export async function moveHead(
  table: Table,
  companyId: number,
  from: Head,
  { manifest, lastChunk, flushedAt, version }: MovedHead,
  { chunk = [], commit }: { readonly chunk?: readonly Write[]; readonly commit?: Commit | undefined } = {},
): Promise<Head | undefined> {
  const set = { type: HEAD_TYPE, format: INDEX_FORMAT, version, manifest, lastChunk, flushedAt };
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

export type PartManifests = ReadonlyMap<string, PartManifest>;

/** The attributes are the same in each format, so garbage collection can also read the manifests of other releases. */
function partManifestIn(item: Item): PartManifest {
  const { sk: partId, ...rest } = PartManifestItem.parse(item);
  return { partId, ...rest };
}

/** The result includes manifests of parts that were recently replaced or were never added to the index. */
export async function readPartManifests(
  table: Reads,
  companyId: number,
  consistency: Consistency,
): Promise<PartManifests> {
  const partManifests = new Map<string, PartManifest>();
  for await (const item of table.query({ ...keys.partManifests(companyId), consistency })) {
    const partManifest = partManifestIn(item);
    partManifests.set(partManifest.partId, partManifest);
  }
  return partManifests;
}

export interface AtHand {
  readonly partManifests?: PartManifests | undefined;
  readonly known?: readonly Part[];
}

/** Reads only the part manifests that the caller does not have. Throws IndexUnreadable if one is missing, damaged or has another format. */
export async function readManifest(
  table: Reads,
  companyId: number,
  partIds: readonly string[],
  { partManifests = new Map(), known = [] }: AtHand = {},
): Promise<Manifest> {
  const parts = new Map(known.map((part) => [part.id, part]));
  const isAtHand = (id: string): boolean => parts.has(id) || partManifests.has(id);
  // A damaged head may contain an id twice, and DynamoDB rejects a batch with equal keys.
  const wanted = [...new Set(partIds.filter((id) => !isAtHand(id)))].map((id) => keys.partManifest(companyId, id));
  const items = wanted.length === 0 ? [] : await table.batchGet(wanted);
  const read = new Map(items.map(partManifestIn).map((partManifest) => [partManifest.partId, partManifest]));
  const partOfId = (id: string): Part =>
    parts.get(id) ?? partOf(companyId, partManifests.get(id) ?? read.get(id) ?? noPartManifest(companyId, id));
  return { parts: partIds.map(partOfId) };
}

function noPartManifest(companyId: number, partId: string): never {
  throw new IndexUnreadable(`the index of company ${companyId} lacks the manifest of part ${partId}`);
}
