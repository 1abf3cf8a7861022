/**
 * Copies of prospects, so that `GET /api/changes` can show changed prospects without reading their rows one by one. The unflushed entry of a
 * changed prospect contains a copy of the fields that lists show. A flush collects the copies of its entries in a few rows beside the change
 * log. The names of statuses, tags and users are not copied, because they may change later.
 */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import * as z from "zod/mini";
import { compress, decompress, IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import * as changeLogKeys from "#shared/db/change-log-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";

interface CopiedAddress {
  readonly id: number;
  readonly address1: string;
  readonly address2: string | null;
  readonly city: string;
  readonly state: string;
  readonly zip: string;
  /** Undefined if the service has computed this text from the other fields. The copy then does not contain the text. */
  readonly formattedAddress: string | null | undefined;
}

/** The fields that lists show and that the index does not store, or stores only in case-folded form. */
export interface CopiedFields {
  readonly name: string | null;
  readonly phoneNumber: string | null;
  readonly secondaryPhoneNumber: string | null;
  readonly emailAddress: string | null;
  readonly address: CopiedAddress | null;
  readonly source: string | null;
  readonly sourceId: string | null;
  readonly sourceCreatedAt: string | null;
  /** JSON text. */
  readonly customFieldData: string | null;
  readonly clientRecordId?: string | undefined;
}

type IndexedFields = Pick<
  IndexRow,
  "id" | "version" | "createdAt" | "statusId" | "assignedToUserId" | "tagIds" | "lat" | "lng"
>;

/** All fields that lists show of one version of a prospect. Only prospects without an upcoming appointment are copied. */
export interface ProspectCopy extends IndexedFields, CopiedFields {
  readonly updatedAt: number;
}

/**
 * Maximum bytes of a copy in an unflushed entry (recent change). Every list reads all these entries, so a larger copy would cost lists more
 * than it saves for `GET /api/changes`.
 */
const COPY_BYTES = 128;

/**
 * Compresses the fields for an entry whose searchable text is `text`. Returns undefined if the result is too long, or if a field cannot be
 * copied.
 */
export function packFields(fields: CopiedFields, text: string): Uint8Array | undefined {
  const joined = joinedFields(fields);
  if (joined === undefined) return undefined;
  const bytes = deflateRawSync(joined, { dictionary: dictionaryOf(text), level: 9 });
  return bytes.length <= COPY_BYTES ? bytes : undefined;
}

/** Returns the copy in an unflushed entry (recent change), or undefined if the entry contains none. */
export function copyIn(entry: IndexRow): ProspectCopy | undefined {
  const { copy, id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng, text } = entry;
  if (copy === undefined || updatedAt === undefined) return undefined;
  const fields = splitFields(inflated(id, copy, text));
  return { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng, ...fields };
}

function inflated(id: number, copy: Uint8Array, text: string): string {
  try {
    return inflateRawSync(copy, { dictionary: dictionaryOf(text) }).toString();
  } catch (error) {
    throw new IndexUnreadable(`the copy of prospect ${id} is damaged`, { cause: error });
  }
}

/**
 * Returns the preset dictionary of the compression: a text to which the compressed bytes may refer. Most fields also occur in the
 * searchable text of the entry, and the source is usually one of the three listed here. A copy therefore needs few bytes.
 */
const dictionaryOf = (text: string): Buffer => Buffer.from(`\ncsv-import\nimport\napi\n${text.toLowerCase()}`);

/** Marks a `formattedAddress` that the service has computed. */
const COMPUTED = "=";
const SEPARATOR = "\n";

/**
 * Joins the fields in a fixed order. Returns undefined if the fields could not be split again exactly: a text contains the separator, is
 * empty instead of null, equals the mark `COMPUTED`, or contains half of a surrogate pair.
 */
function joinedFields({ address, clientRecordId, ...fields }: CopiedFields): string | undefined {
  const { name, phoneNumber, secondaryPhoneNumber, emailAddress } = fields;
  const { source, sourceId, sourceCreatedAt, customFieldData } = fields;
  const shortId = clientRecordId === undefined ? null : shortUuid(clientRecordId);
  const nullable = [name, phoneNumber, secondaryPhoneNumber, emailAddress];
  const more = [source, sourceId, sourceCreatedAt, customFieldData, shortId];
  const ofAddress = [address?.address2, address?.formattedAddress];
  const isAmbiguous = [...nullable, ...more, ...ofAddress].includes("") || address?.formattedAddress === COMPUTED;
  const lines = [...nullable, ...addressLines(address), ...more].map((line) => line ?? "");
  if (isAmbiguous || !lines.every((line) => line.isWellFormed() && !line.includes(SEPARATOR))) return undefined;
  return lines.join(SEPARATOR).replace(/\n+$/, "");
}

const ADDRESS_LINES = 7;

function addressLines(address: CopiedAddress | null): (string | null)[] {
  if (address === null) return Array.from({ length: ADDRESS_LINES }, () => null);
  const { id, address1, address2, city, state, zip, formattedAddress } = address;
  return [address1, address2, city, state, zip, formattedAddress === undefined ? COMPUTED : formattedAddress, `${id}`];
}

function splitFields(joined: string): CopiedFields {
  const lines = joined.split(SEPARATOR);
  const text = (at: number): string => lines[at] ?? "";
  const nullable = (at: number): string | null => text(at) || null;
  const [address1, city, state, zip] = [text(4), text(6), text(7), text(8)];
  const formattedAddress = text(9) === COMPUTED ? undefined : nullable(9);
  const address = { id: Number(text(10)), address1, address2: nullable(5), city, state, zip, formattedAddress };
  return {
    name: nullable(0),
    phoneNumber: nullable(1),
    secondaryPhoneNumber: nullable(2),
    emailAddress: nullable(3),
    address: text(10) === "" ? null : address,
    source: nullable(11),
    sourceId: nullable(12),
    sourceCreatedAt: nullable(13),
    customFieldData: nullable(14),
    clientRecordId: text(15) === "" ? undefined : longUuid(text(15)),
  };
}

/** Returns the 16 bytes of the UUID in 22 characters. Returns an empty text if the UUID does not have the usual form in lower case. */
function shortUuid(uuid: string): string {
  const short = Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url");
  return longUuid(short) === uuid ? short : "";
}

const longUuid = (short: string): string =>
  Buffer.from(short, "base64url")
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");

/** Maximum number of copies in one row of the table. A row with this number of copies usually needs 12 KB. */
const COPIES_PER_ROW = 128;

/** Where the copies of one flush are stored. The copies are sorted by the id of the prospect and divided into rows of the table. */
export const CopyRows = z.object({
  /** The version of the change log's chunk to which the copies belong, and a random id. Both are part of the keys of the rows. */
  version: z.int(),
  id: z.string(),
  /** For each row: the id of the last prospect in it, and the size of the row in bytes. */
  rows: z.array(z.tuple([z.int(), z.int()])),
});
export type CopyRows = z.infer<typeof CopyRows>;

/**
 * Returns the rows that store the copies, and where they are. `version` is the version of the chunk to which they belong, and `id` must be
 * random. DynamoDB's TTL deletes the rows after `expiresAt`, in seconds since 1970.
 */
export function copyItems(
  companyId: number,
  { version, id }: Pick<CopyRows, "version" | "id">,
  copies: readonly ProspectCopy[],
  expiresAt: number,
): { items: (Key & Item)[]; copies: CopyRows } {
  const sorted = copies.toSorted((a, b) => a.id - b.id);
  const items: (Key & Item)[] = [];
  const rows: [number, number][] = [];
  for (let at = 0; at < sorted.length; at += COPIES_PER_ROW) {
    const some = sorted.slice(at, at + COPIES_PER_ROW);
    const bytes = compress(Buffer.from(JSON.stringify(some.map(tupleOf))));
    items.push({
      ...changeLogKeys.copiesOfChunk(companyId, version, id, rows.length),
      type: "changeCopies",
      bytes,
      expiresAt,
    });
    rows.push([some.at(-1)?.id ?? 0, bytes.length]);
  }
  return { items, copies: { version, id, rows } };
}

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

function tupleOf(copy: ProspectCopy): z.infer<typeof Tuple> {
  const { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng } = copy;
  const joined = joinedFields(copy) ?? "";
  return [id, version, createdAt, updatedAt - createdAt, statusId, assignedToUserId, [...tagIds], lat, lng, joined];
}

function copyOf(tuple: z.infer<typeof Tuple>): ProspectCopy {
  const [id, version, createdAt, later, statusId, assignedToUserId, tagIds, lat, lng, joined] = tuple;
  const updatedAt = createdAt + later;
  return { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng, ...splitFields(joined) };
}

const CopiesItem = z.object({ pk: z.string(), sk: z.string(), bytes: z.instanceof(Uint8Array) });
const Tuples = z.array(Tuple);

/** A version of a prospect whose copy is wanted. `copies` says where the flush of this version has stored its copies. */
export interface WantedCopy {
  readonly id: number;
  readonly version: number;
  readonly copies?: CopyRows | undefined;
}

/** Bytes that an eventually consistent read returns for half a read unit. Reading the row of a single prospect also costs half a unit. */
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

/** A row of copies, and the prospects whose copies are probably in this row. */
interface Group {
  readonly row: WantedRow;
  readonly wanted: WantedCopy[];
}

/**
 * Returns the rows of copies that cost less than reading the rows of their prospects one by one. A row in `atHand` costs nothing, because it
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

/**
 * Returns the copies by the id of the prospect. Rows that are not in `atHand` are read with eventual consistency. The result omits a
 * prospect if its copy is not visible yet, or if the flush has not copied it.
 */
export async function readCopies(
  table: Reads,
  groups: readonly Group[],
  atHand: readonly Item[] = [],
): Promise<Map<number, ProspectCopy>> {
  const found = new Map<number, ProspectCopy>();
  const free = new Set(atHand.map(({ sk }) => sk));
  const unread = groups.map(({ row }) => row.key).filter(({ sk }) => !free.has(sk));
  const read = unread.length === 0 ? [] : await table.batchGet(unread, { consistency: "eventual" });
  const wanted = new Map(groups.map(({ row, wanted: some }) => [row.key.sk, some]));
  for (const item of [...atHand, ...read]) {
    const { sk, bytes } = CopiesItem.parse(item);
    const versions = new Map(wanted.get(sk)?.map(({ id, version }) => [id, version]));
    if (versions.size === 0) continue;
    const tuples = decompress("a row of copies", bytes, (json) =>
      Tuples.parse(JSON.parse(Buffer.from(json).toString())),
    );
    for (const copy of tuples.map(copyOf)) if (versions.get(copy.id) === copy.version) found.set(copy.id, copy);
  }
  return found;
}
