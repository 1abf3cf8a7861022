/** Stores binary data of a company index. A piece is a sequence of bytes, for example some columns of a segment, in one or more items. */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { Manifest, Part, SegmentEntry } from "#shared/company-index/manifest.ts";
import type { NoteText } from "#shared/company-index/record.ts";
import { columnsOf, groups, type SegmentColumns } from "#shared/company-index/segment.ts";
import { decodeNotes, decodeOverrides, noOverrides, type Overrides } from "#shared/company-index/versions.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";

/** DynamoDB limits an item to 400 KB, including its keys. */
const ITEM_BYTES = 380_000;

/** Returns an id of 72 random bits, so that no piece overwrites another one. */
export const newPieceId = (): string => randomBytes(9).toString("base64url");

/** `owner` is the id of a segment or part. `count` is the number of items that store the piece. */
export interface Piece {
  readonly owner: string;
  readonly name: string;
  readonly count: number;
}

export function cutPiece(companyId: number, owner: string, name: string, bytes: Uint8Array) {
  const count = Math.ceil(bytes.length / ITEM_BYTES);
  const items = Array.from({ length: count }, (_, i) => ({
    ...keys.indexItem(companyId, owner, name, i),
    type: "indexItem",
    bytes: bytes.subarray(i * ITEM_BYTES, (i + 1) * ITEM_BYTES),
  }));
  return { count, items };
}

const keysOf = (companyId: number, { owner, name, count }: Piece): Key[] =>
  Array.from({ length: count }, (_, i) => keys.indexItem(companyId, owner, name, i));

const PieceItem = z.object({ pk: z.string(), sk: z.string(), bytes: z.instanceof(Uint8Array) });

/** Returns the bytes of each piece. Reads a missing item again with strong consistency. Throws IndexUnreadable if it stays missing. */
export async function readPieces(table: Reads, companyId: number, pieces: readonly Piece[]): Promise<Uint8Array[]> {
  const wanted = pieces.flatMap((piece) => keysOf(companyId, piece));
  const found = new Map<string, Uint8Array>();
  for (const consistency of ["eventual", "strong"] as const) {
    const left = wanted.filter((key) => !found.has(nameOf(key)));
    for (const item of left.length === 0 ? [] : await table.batchGet(left, { consistency })) {
      const { pk, sk, bytes } = PieceItem.parse(item);
      found.set(nameOf({ pk, sk }), bytes);
    }
  }
  return pieces.map((piece) => {
    const items = keysOf(companyId, piece).map((key) => found.get(nameOf(key)));
    return Buffer.concat(items.map((bytes) => bytes ?? missing(companyId, piece)));
  });
}

function missing(companyId: number, { owner, name }: Piece): never {
  throw new IndexUnreadable(`the index of company ${companyId} lacks an item of ${name} of ${owner}`);
}

const nameOf = ({ pk, sk }: Key): string => `${pk}|${sk}`;

/** Deletes the pieces, each once: a damaged manifest may contain a piece twice, and DynamoDB rejects a batch with equal keys. */
export function removePieces(table: Table, companyId: number, pieces: readonly Piece[]): Promise<void> {
  const going = new Map(pieces.flatMap((piece) => keysOf(companyId, piece)).map((key) => [nameOf(key), key]));
  return table.batchRemove([...going.values()]);
}

export const piecesOf = ({ parts }: Manifest): Piece[] =>
  parts.flatMap((part) => [...piecesOfPart(part), ...part.segments.flatMap(piecesOfSegment)]);

const piecesOfPart = ({ id, overrides, looseNotes }: Part): Piece[] => [
  { owner: id, name: "overrides", count: overrides },
  { owner: id, name: "notes", count: looseNotes },
];

export const piecesOfSegment = ({ id, counts }: SegmentEntry): Piece[] =>
  groups.map((name) => ({ owner: id, name, count: counts[name] }));

/** The data of a part outside its segments. `looseNotes` are notes whose prospects are in other parts. */
export interface PartOverrides {
  readonly overrides: Overrides;
  readonly looseNotes: readonly NoteText[];
}

export const noPartOverrides: PartOverrides = { overrides: noOverrides, looseNotes: [] };

export async function readPartOverrides(
  table: Reads,
  companyId: number,
  parts: readonly Part[],
): Promise<PartOverrides[]> {
  const bytes = await readPieces(table, companyId, parts.flatMap(piecesOfPart));
  return parts.map((part, i) => ({
    overrides:
      part.overrides === 0 ? inlineOverridesOf(part) : decodeOverrides(`overrides of ${part.id}`, at(bytes, 2 * i)),
    looseNotes: part.looseNotes === 0 ? [] : decodeNotes(`notes of ${part.id}`, at(bytes, 2 * i + 1)),
  }));
}

export const inlineOverridesOf = ({ id, fewOverrides }: Part): Overrides =>
  fewOverrides === undefined ? noOverrides : decodeOverrides(`overrides of ${id}`, fewOverrides);

/** Returns for each segment a function that decodes it. Only the compressed bytes stay in memory, so each call decodes them again. */
export async function readSegments(
  table: Reads,
  companyId: number,
  { segments }: Pick<Part, "segments">,
): Promise<(() => SegmentColumns)[]> {
  const bytes = await readPieces(table, companyId, segments.flatMap(piecesOfSegment));
  return segments.map(({ id }, i) => {
    const [main, geo, text] = [at(bytes, 3 * i), at(bytes, 3 * i + 1), at(bytes, 3 * i + 2)];
    return () => columnsOf(id, { main, geo, text });
  });
}
