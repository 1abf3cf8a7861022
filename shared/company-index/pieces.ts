/**
 * Stores the binary data of a company's search index. A piece is a sequence of bytes that never changes, for example some columns of a
 * segment. Its parts fit into items.
 */

import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { Manifest, Run, SegmentEntry } from "#shared/company-index/manifest.ts";
import type { NoteText } from "#shared/company-index/record.ts";
import { columnsOf, type SegmentColumns } from "#shared/company-index/segment.ts";
import { decodeNotes, decodeOverrides, noOverrides, type Overrides } from "#shared/company-index/versions.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";

/** DynamoDB limits an item to 400 KB, including its keys. */
const PART_BYTES = 380_000;

/** 72 random bits, so that no piece overwrites another piece. */
export const newPieceId = (): string => randomBytes(9).toString("base64url");

/** `owner` is the id of a segment or run. `parts` is the number of items that store the piece. */
export interface Piece {
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

/** Returns the bytes in the given order. Reads only missing parts with strong consistency. Throws IndexUnreadable if one stays missing. */
export async function readPieces(table: Reads, companyId: number, pieces: readonly Piece[]): Promise<Uint8Array[]> {
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

/** A damaged manifest may contain a piece twice, and DynamoDB rejects a batch with equal keys. */
export function removePieces(table: Table, companyId: number, pieces: readonly Piece[]): Promise<void> {
  const going = new Map(pieces.flatMap((piece) => keysOf(companyId, piece)).map((key) => [nameOf(key), key]));
  return table.batchRemove([...going.values()]);
}

export const piecesOf = ({ runs }: Manifest): Piece[] =>
  runs.flatMap((run) => [...piecesOfRun(run), ...run.segments.flatMap(piecesOfSegment)]);

const piecesOfRun = ({ id, overrides, looseNotes }: Run): Piece[] => [
  { owner: id, name: "overrides", parts: overrides },
  { owner: id, name: "notes", parts: looseNotes },
];

export const piecesOfSegment = ({ id, parts: all }: SegmentEntry): Piece[] =>
  Object.entries(all).map(([name, parts]) => ({ owner: id, name, parts }));

/** The data of a run outside its segments. `looseNotes` are notes whose prospects are in other runs. */
export interface RunOverrides {
  readonly overrides: Overrides;
  readonly looseNotes: readonly NoteText[];
}

export const noRunOverrides: RunOverrides = { overrides: noOverrides, looseNotes: [] };

export async function readRunOverrides(table: Reads, companyId: number, runs: readonly Run[]): Promise<RunOverrides[]> {
  const bytes = await readPieces(table, companyId, runs.flatMap(piecesOfRun));
  return runs.map((run, i) => runOverridesOf(run, bytes[2 * i], bytes[2 * i + 1]));
}

const runOverridesOf = (run: Run, overrides: Uint8Array | undefined, notes: Uint8Array | undefined): RunOverrides => ({
  overrides:
    overrides === undefined || run.overrides === 0
      ? inlineOverridesOf(run)
      : decodeOverrides(`overrides of ${run.id}`, overrides),
  looseNotes: notes === undefined || run.looseNotes === 0 ? [] : decodeNotes(`notes of ${run.id}`, notes),
});

export const inlineOverridesOf = ({ id, fewOverrides }: Run): Overrides =>
  fewOverrides === undefined ? noOverrides : decodeOverrides(`overrides of ${id}`, fewOverrides);

/** Only the compressed bytes stay in memory, so each call of a returned function decodes its segment again. */
export async function readSegments(
  table: Reads,
  companyId: number,
  { segments }: Pick<Run, "segments">,
): Promise<(() => SegmentColumns)[]> {
  const bytes = await readPieces(
    table,
    companyId,
    segments.flatMap(({ id, parts }) =>
      (["main", "geo", "text"] as const).map((name) => ({ owner: id, name, parts: parts[name] })),
    ),
  );
  return segments.map(({ id }, i) => {
    const [main, geo, text] = bytes.slice(3 * i);
    if (main === undefined || geo === undefined || text === undefined)
      throw new Error("a read returned fewer pieces than requested");
    return () => columnsOf(id, { main, geo, text });
  });
}
