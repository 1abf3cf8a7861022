/** Pieces of the index in the table: bytes cut into items, never changed once they are written. */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { IndexUnreadable } from "#shared/company-index/compress.ts";
import { type Manifest, type Run, runOf, type SegmentEntry, type Sheet } from "#shared/company-index/manifest.ts";
import type { Consistency } from "#shared/db/batch.ts";
import type { Item } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** Below DynamoDB's 400 KB for an item. */
const PART_BYTES = 380_000;

/** 72 random bits: no two pieces share an id, so none is ever written over. */
export const newPieceId = (): string => randomBytes(9).toString("base64url");

/** What belongs to a segment or a run under one name. */
export interface Piece {
  /** Id of the segment or run. */
  readonly owner: string;
  readonly name: string;
  readonly parts: number;
}

export interface StoredPiece {
  readonly parts: number;
  readonly items: readonly (Key & Item)[];
}

export function cutPiece(companyId: number, owner: string, name: string, bytes: Uint8Array): StoredPiece {
  const parts = Math.ceil(bytes.length / PART_BYTES);
  const items = Array.from({ length: parts }, (_, part) => ({
    ...keys.indexPart(companyId, owner, name, part),
    type: "indexPart",
    bytes: bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
  }));
  return { parts, items };
}

const keysOf = (companyId: number, { owner, name, parts }: Piece): Key[] =>
  Array.from({ length: parts }, (_, part) => keys.indexPart(companyId, owner, name, part));

const PartItem = z.object({ pk: z.string(), sk: z.string(), bytes: z.instanceof(Uint8Array) });

/**
 * The bytes of each piece, in the order asked: one round. Pieces never change, so that an eventual read is as good as any; what
 * it does not find yet is asked for again. Throws IndexUnreadable where a part is missing.
 */
export async function readPieces(table: Table, companyId: number, pieces: readonly Piece[]): Promise<Uint8Array[]> {
  const wanted = pieces.flatMap((piece) => keysOf(companyId, piece));
  const found = new Map<string, Uint8Array>();
  for (const consistency of ["eventual", "strong"] as const) {
    const left = wanted.filter((key) => !found.has(nameOf(key)));
    for (const item of left.length === 0 ? [] : await table.batchGet(left, { consistency })) {
      const { pk, sk, bytes } = PartItem.parse(item);
      found.set(nameOf({ pk, sk }), bytes);
    }
  }
  return pieces.map((piece) => {
    const parts = keysOf(companyId, piece).map((key) => found.get(nameOf(key)));
    return Buffer.concat(parts.map((part) => part ?? missing(companyId, piece)));
  });
}

function missing(companyId: number, { owner, name }: Piece): never {
  throw new IndexUnreadable(`the index of company ${companyId} lacks a part of ${name} of ${owner}`);
}

const nameOf = ({ pk, sk }: Key): string => `${pk}|${sk}`;

/** A damaged manifest may name a piece twice, and a batch may not. */
export function removePieces(table: Table, companyId: number, pieces: readonly Piece[]): Promise<void> {
  const going = new Map(pieces.flatMap((piece) => keysOf(companyId, piece)).map((key) => [nameOf(key), key]));
  return table.batchRemove([...going.values()]);
}

/** Everything that these runs lead to. */
export const piecesOf = ({ runs }: Manifest): Piece[] =>
  runs.flatMap(({ id, overrides, looseNotes, segments }) => [
    { owner: id, name: "overrides", parts: overrides },
    { owner: id, name: "notes", parts: looseNotes },
    ...segments.flatMap(piecesOfSegment),
  ]);

export const piecesOfSegment = ({ id, parts: all }: SegmentEntry): Piece[] =>
  Object.entries(all).map(([name, parts]) => ({ owner: id, name, parts }));

const SheetItem = z.object({
  sk: z.string(),
  format: z.int(),
  at: z.int(),
  replaced: z.array(z.string()),
  bytes: z.instanceof(Uint8Array),
  fewOverrides: z.optional(z.instanceof(Uint8Array)),
});

/** By the ids of their runs. */
export type Sheets = ReadonlyMap<string, Sheet>;

export const sheetItem = (companyId: number, { runId, fewOverrides, ...rest }: Sheet): Key & Item => ({
  ...keys.runSheet(companyId, runId),
  type: "runSheet",
  ...rest,
  ...(fewOverrides !== undefined && { fewOverrides }),
});

/** Whatever its format is, these fields are in it. */
function sheetIn(item: Item): Sheet {
  const { sk, fewOverrides, ...rest } = SheetItem.parse(item);
  return { runId: sk, ...rest, fewOverrides };
}

/** All that there are: of the runs that hold, of those that they have replaced lately, and of some that never came to hold. */
export async function readSheets(table: Table, companyId: number, consistency: Consistency): Promise<Sheets> {
  const sheets = new Map<string, Sheet>();
  for await (const item of table.query({ ...keys.runSheets(companyId), consistency })) {
    const sheet = sheetIn(item);
    sheets.set(sheet.runId, sheet);
  }
  return sheets;
}

/** What is known already when a manifest is read. */
export interface AtHand {
  readonly sheets?: Sheets | undefined;
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
  { sheets = new Map(), known = [] }: AtHand = {},
): Promise<Manifest> {
  const runs = new Map(known.map((run) => [run.id, run]));
  const isAtHand = (id: string): boolean => runs.has(id) || sheets.has(id);
  // A damaged head may name a run twice, and a batch may not.
  const wanted = [...new Set(runIds.filter((id) => !isAtHand(id)))].map((id) => keys.runSheet(companyId, id));
  const items = wanted.length === 0 ? [] : await table.batchGet(wanted);
  const read = new Map(items.map(sheetIn).map((sheet) => [sheet.runId, sheet]));
  const runOfId = (id: string): Run =>
    runs.get(id) ?? runOf(companyId, sheets.get(id) ?? read.get(id) ?? noSheet(companyId, id));
  return { runs: runIds.map(runOfId) };
}

function noSheet(companyId: number, runId: string): never {
  throw new IndexUnreadable(`the index of company ${companyId} lacks the sheet of run ${runId}`);
}
