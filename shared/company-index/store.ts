/** Pieces of the index in the table: bytes cut into items, never changed once they are written. */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { IndexUnreadable } from "#shared/company-index/compress.ts";
import type { ManifestName } from "#shared/company-index/head.ts";
import { decodeManifest, emptyManifest, encodeManifest, type Manifest } from "#shared/company-index/manifest.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Item, Table } from "#shared/db/table.ts";

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
    for (const item of left.length === 0 ? [] : await table.batchGet(left, consistency)) {
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

/** Everything that a manifest leads to. */
export const piecesOf = ({ runs }: Manifest): Piece[] =>
  runs.flatMap(({ id, overrides, looseNotes, segments }) => [
    { owner: id, name: "overrides", parts: overrides },
    { owner: id, name: "notes", parts: looseNotes },
    ...segments.flatMap((segment) =>
      Object.entries(segment.parts).map(([name, parts]) => ({ owner: segment.id, name, parts })),
    ),
  ]);

const ManifestItem = z.object({ sk: z.string(), bytes: z.instanceof(Uint8Array) });

export const manifestItem = (companyId: number, { version, id }: ManifestName, manifest: Manifest): Key & Item => ({
  ...keys.manifest(companyId, version, id),
  type: "manifest",
  bytes: encodeManifest(manifest),
});

/** Throws IndexUnreadable where it is missing or damaged. */
export async function readManifest(table: Table, companyId: number, name: ManifestName | null): Promise<Manifest> {
  const manifest = name === null ? emptyManifest : await findManifest(table, companyId, name);
  if (manifest !== undefined) return manifest;
  throw new IndexUnreadable(`the index of company ${companyId} lacks manifest ${name?.version}`);
}

/** Undefined where it is not there any more. */
export async function findManifest(
  table: Table,
  companyId: number,
  { version, id }: ManifestName,
): Promise<Manifest | undefined> {
  const item = await table.get(keys.manifest(companyId, version, id));
  return item === undefined ? undefined : manifestIn(companyId, item);
}

/** The one with the highest version, which mostly holds: for a reader that does not know the head yet. */
export async function newestManifest(
  table: Table,
  companyId: number,
): Promise<{ id: string; manifest: Manifest } | null> {
  for await (const item of table.query({ ...keys.manifests(companyId), newestFirst: true, pageItems: 1 })) {
    const { sk } = ManifestItem.parse(item);
    return { id: sk.slice(sk.indexOf("#") + 1), manifest: manifestIn(companyId, item) };
  }
  return null;
}

function manifestIn(companyId: number, item: Item): Manifest {
  const { sk, bytes } = ManifestItem.parse(item);
  return decodeManifest(`manifest ${sk} of company ${companyId}`, bytes);
}
