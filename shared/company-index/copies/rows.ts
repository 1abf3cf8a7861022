/**
 * The rows with copies of changed prospects, notes and appointments beside the change log. A flush collects the copies of its unflushed
 * entries (recent changes) in these rows, and `GET /api/changes` reads them instead of the rows of the records.
 */
import * as z from "zod/mini";
import type { CopyRows } from "#shared/company-index/change-log.ts";
import { joinedFields, type ProspectCopy, splitFields } from "#shared/company-index/copies/prospect.ts";
import { compress, decompress } from "#shared/company-index/encoding.ts";
import * as changeLogKeys from "#shared/db/change-log-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";

/** Maximum number of copies in one row of the table. A row with this number of copies usually needs 12 KB. */
const COPIES_PER_ROW = 128;

/** The copy of a note or appointment, as text. */
export interface AttachedCopy {
  readonly id: number;
  readonly version: number;
  readonly text: string;
}

export interface CopiesToStore {
  readonly prospects: readonly ProspectCopy[];
  readonly attached: readonly AttachedCopy[];
}

/**
 * Returns the rows that store the copies, and where they are. `version` is the version of the chunk to which they belong, and `id` must be
 * random. DynamoDB's TTL deletes the rows after `expiresAt`, in seconds since 1970.
 */
export function copyItems(
  companyId: number,
  { version, id }: Pick<CopyRows, "version" | "id">,
  { prospects, attached }: CopiesToStore,
  expiresAt: number,
): { items: (Key & Item)[]; copies: CopyRows } {
  const sorted = [...prospects, ...attached].sort((a, b) => a.id - b.id);
  const items: (Key & Item)[] = [];
  const rows: [number, number][] = [];
  for (let at = 0; at < sorted.length; at += COPIES_PER_ROW) {
    const some = sorted.slice(at, at + COPIES_PER_ROW);
    const contents = contentsOf(some);
    const key = changeLogKeys.copiesOfChunk(companyId, version, id, rows.length);
    items.push({ ...key, type: "changeCopies", ...contents, expiresAt });
    rows.push([some.at(-1)?.id ?? 0, contents.bytes.length + (contents.more?.length ?? 0)]);
  }
  return { items, copies: { version, id, rows, ...(attached.length > 0 && { hasAttached: true }) } };
}

/**
 * Returns the attributes of a row. Functions of an earlier deployment can read only `bytes`. So `bytes` contains only prospects that have no
 * upcoming appointments and whose last change was not a change of an appointment. `more` contains all other copies.
 */
function contentsOf(copies: readonly (ProspectCopy | AttachedCopy)[]): { bytes: Uint8Array; more?: Uint8Array } {
  const prospects = copies.flatMap((copy) => ("text" in copy ? [] : [copy]));
  const attached = copies.flatMap((copy) => ("text" in copy ? [copy] : []));
  const others = prospects.filter(hasAppointments);
  const bytes = encoded(prospects.filter((copy) => !hasAppointments(copy)).map(tupleOf));
  if (others.length + attached.length === 0) return { bytes };
  const more: z.infer<typeof More> = {
    prospects: others.map((copy) => [tupleOf(copy), copy.changedAt]),
    attached: attached.map(({ id, version, text }) => [id, version, text]),
  };
  return { bytes, more: encoded(more) };
}

const hasAppointments = ({ upcoming, changedAt, updatedAt }: ProspectCopy): boolean =>
  upcoming.length > 0 || changedAt !== updatedAt;

const encoded = (contents: unknown): Uint8Array => compress(Buffer.from(JSON.stringify(contents)));

const Tuple = z.tuple([
  z.int(),
  z.int(),
  z.int(),
  z.int(),
  z.nullable(z.int()),
  z.nullable(z.int()),
  z.array(z.int()),
  z.nullable(z.number()),
  z.nullable(z.number()),
  z.string(),
]);
const Tuples = z.array(Tuple);

const More = z.object({
  /** Prospects, each with the time of its change. */
  prospects: z.array(z.tuple([Tuple, z.int()])),
  /** Notes and appointments: the id, the version and the copy. */
  attached: z.array(z.tuple([z.int(), z.int(), z.string()])),
});

function tupleOf(copy: ProspectCopy): z.infer<typeof Tuple> {
  const { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng } = copy;
  const joined = joinedFields(copy) ?? "";
  return [id, version, createdAt, updatedAt - createdAt, statusId, assignedToUserId, [...tagIds], lat, lng, joined];
}

function copyOf(tuple: z.infer<typeof Tuple>, changedAt?: number): ProspectCopy {
  const [id, version, createdAt, later, statusId, assignedToUserId, tagIds, lat, lng, joined] = tuple;
  const updatedAt = createdAt + later;
  const times = { createdAt, updatedAt, changedAt: changedAt ?? updatedAt };
  return { id, version, ...times, statusId, assignedToUserId, tagIds, lat, lng, ...splitFields(joined) };
}

const CopiesItem = z.object({
  pk: z.string(),
  sk: z.string(),
  bytes: z.instanceof(Uint8Array),
  more: z.optional(z.instanceof(Uint8Array)),
});

const decoded = <S extends z.ZodMiniType>(schema: S, bytes: Uint8Array): z.output<S> =>
  decompress("a row of copies", bytes, (json) => schema.parse(JSON.parse(Buffer.from(json).toString())));

/** A version of a record whose copy is wanted. `copies` says where the flush of this version has stored its copies. */
export interface WantedCopy {
  readonly id: number;
  readonly version: number;
  readonly copies?: CopyRows | undefined;
}

/** Bytes that an eventually consistent read returns for half a read unit. Reading the row of a single record also costs half a unit. */
const BYTES_PER_HALF_UNIT = 4_096;

interface WantedRow {
  readonly key: Key;
  readonly bytes: number;
}

/** Returns the row that would contain the copy, or undefined if no row would. */
function rowOf(companyId: number, { id, copies }: WantedCopy): WantedRow | undefined {
  const part = copies?.rows.findIndex(([last]) => last >= id) ?? -1;
  const row = copies?.rows[part];
  return copies === undefined || row === undefined
    ? undefined
    : { key: changeLogKeys.copiesOfChunk(companyId, copies.version, copies.id, part), bytes: row[1] };
}

/** A row of copies, and the records whose copies are probably in this row. */
export interface Group {
  readonly row: WantedRow;
  readonly wanted: WantedCopy[];
}

/**
 * Returns the rows of copies that cost less than reading the rows of their records one by one. A row in `atHand` costs nothing, because it
 * was already read.
 */
export function worthReading(companyId: number, all: readonly WantedCopy[], atHand: readonly Item[] = []): Group[] {
  const free = new Set(atHand.map(({ sk }) => sk));
  const groups = new Map<string, Group>();
  for (const one of all) {
    const row = rowOf(companyId, one);
    if (row === undefined) continue;
    const group = groups.get(row.key.sk) ?? { row, wanted: [] };
    groups.set(row.key.sk, group);
    group.wanted.push(one);
  }
  return [...groups.values()].filter(
    ({ row: { key, bytes }, wanted }) => free.has(key.sk) || wanted.length > Math.ceil(bytes / BYTES_PER_HALF_UNIT),
  );
}

/** Copies by the id of the record. */
export interface StoredCopies {
  readonly prospects: ReadonlyMap<number, ProspectCopy>;
  readonly attached: ReadonlyMap<number, AttachedCopy>;
}

/**
 * Returns the copies of the wanted versions. Rows that are not in `atHand` are read with eventual consistency. The result omits a record if
 * its copy is not visible yet, or if the flush has not copied it.
 */
export async function readCopies(
  table: Reads,
  groups: readonly Group[],
  atHand: readonly Item[] = [],
): Promise<StoredCopies> {
  const prospects = new Map<number, ProspectCopy>();
  const attached = new Map<number, AttachedCopy>();
  const free = new Set(atHand.map(({ sk }) => sk));
  const unread = groups.map(({ row }) => row.key).filter(({ sk }) => !free.has(sk));
  const read = unread.length === 0 ? [] : await table.batchGet(unread, { consistency: "eventual" });
  const wanted = new Map(groups.map(({ row, wanted: some }) => [row.key.sk, some]));
  for (const item of [...atHand, ...read]) {
    const { sk, bytes, more } = CopiesItem.parse(item);
    const versions = new Map(wanted.get(sk)?.map(({ id, version }) => [id, version]));
    if (versions.size === 0) continue;
    const others = more === undefined ? { prospects: [], attached: [] } : decoded(More, more);
    const all = [
      ...decoded(Tuples, bytes).map((tuple) => copyOf(tuple)),
      ...others.prospects.map(([tuple, changedAt]) => copyOf(tuple, changedAt)),
    ];
    for (const copy of all) if (versions.get(copy.id) === copy.version) prospects.set(copy.id, copy);
    for (const [id, version, text] of others.attached)
      if (versions.get(id) === version) attached.set(id, { id, version, text });
  }
  return { prospects, attached };
}
