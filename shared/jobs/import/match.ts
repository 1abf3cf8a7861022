/** Finds the prospects that the rows of a file match. All keys are collected first, so that the prospects are read only once. */
import { hash } from "node:crypto";
import { mapConcurrently } from "#shared/all-ended.ts";
import { at } from "#shared/at.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf, IDS_PER_PARTITION } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError } from "#shared/errors.ts";
import { keyOf, type MatchBy } from "#shared/prospects/match-key.ts";
import { isPublished, isVisible, publishedBlocks } from "#shared/prospects/read.ts";
import { pageProspect, type StoredProspect } from "#shared/prospects/stored.ts";

/** `repeated`: an earlier row of the file has the same key. */
export type Match =
  | { readonly kind: "none" }
  | { readonly kind: "one"; readonly id: number }
  | { readonly kind: "several" }
  | { readonly kind: "repeated"; readonly row: number };

const SEVERAL = -1;

/** The prospects that the rows of a file match, in eight bytes for each row, so that a million rows fit into the memory. */
export class Matches {
  /**
   * The result by row number: 0 is no prospect, -1 several, and a positive number the id of the only one. If an earlier row has the same
   * key, it is the negative number of that row, never -1, because row 1 is the header.
   */
  readonly #codes: Float64Array;

  constructor(codes: Float64Array) {
    this.#codes = codes;
  }

  of(row: number): Match {
    // Rows after the last one with a key have no code.
    const code = this.#codes[row];
    if (code === undefined || code === 0) return { kind: "none" };
    if (code > 0) return { kind: "one", id: code };
    return code === SEVERAL ? { kind: "several" } : { kind: "repeated", row: -code };
  }

  static fromBytes(bytes: Uint8Array): Matches {
    return new Matches(new Float64Array(Uint8Array.from(bytes).buffer));
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#codes.buffer, this.#codes.byteOffset, this.#codes.byteLength);
  }
}

/** Keeps 64 bits of each key's SHA-1. The probability that two of a million keys have the same bits is below one in ten million. */
export class FileKeys {
  readonly by: MatchBy;
  readonly #ids: number[] = [];
  /** The first row of the file with each key. */
  readonly #rows = new Map<string, number>();
  /** The codes of `Matches`, by row number. Before `meet` is called, only rows that repeat a key have a code other than 0. */
  readonly #codes: number[] = [];

  constructor(by: MatchBy) {
    this.by = by;
  }

  /** The ids in the file, in ascending order. The array is empty unless the rows are matched by id. */
  get ids(): number[] {
    return this.#ids.sort((a, b) => a - b);
  }

  /** Call it for the rows in the order of the file. */
  add(row: number, key: string): void {
    const digest = digestOf(key);
    const first = this.#rows.get(digest);
    this.#codes[row] = first === undefined ? 0 : -first;
    if (first !== undefined) return;
    this.#rows.set(digest, row);
    if (this.by === "id") this.#ids.push(Number(key));
  }

  /** Stores that the prospect `id` has the key. Does nothing if no row of the file has this key. */
  meet(id: number, key: string): void {
    const row = this.#rows.get(digestOf(key));
    if (row !== undefined) this.#codes[row] = this.#codes[row] === 0 ? id : SEVERAL;
  }

  matches(): Matches {
    return new Matches(Float64Array.from(this.#codes, (code) => code ?? 0));
  }
}

const digestOf = (key: string): string => hash("sha1", key, "binary").slice(0, 8);

export interface ReadLimits {
  readonly prospects: number;
  /** Number of blocks of 128 ids that may be read. Each block needs at least one Query. */
  readonly blocks: number;
}

const tooMany = (what: string): ApiError =>
  new ApiError(
    "payload_too_large",
    `To match these rows, a request may read at most ${what}, and the company has more. Make an import job, which has no such limit: POST /api/prospects/imports.`,
  );

/**
 * Finds the prospects that the rows match and that the caller may see. The table has no index of source ids and e-mail addresses, so for
 * these it reads all prospects of the company. Throws `payload_too_large` if this needs more reads than `most` allows.
 */
export async function findMatches(
  table: Table,
  caller: Caller,
  fileKeys: FileKeys,
  { onProgress, most }: { readonly onProgress: () => Promise<void>; readonly most: ReadLimits },
): Promise<Matches> {
  const { companyId } = caller;
  const published = new Map<string, Promise<boolean>>();
  async function isShown({ importId }: StoredProspect): Promise<boolean> {
    if (importId === undefined) return true;
    const known = published.get(importId) ?? isPublished(table, companyId, importId);
    published.set(importId, known);
    return known;
  }
  const { by } = fileKeys;
  const reads =
    by === "id" ? readsOfIds(table, companyId, fileKeys.ids) : readsOfCompany(table, companyId, most.blocks);
  let read = 0;
  for await (const items of reads) {
    read += items.length;
    if (read > most.prospects) throw tooMany(`${most.prospects} prospects`);
    for (const item of items) {
      const candidate = pageProspect(item);
      const key = keyOf(by, candidate);
      if (key === undefined || !isVisible(caller, candidate) || !(await isShown(candidate))) continue;
      fileKeys.meet(candidate.id, key);
    }
    await onProgress();
  }
  return fileKeys.matches();
}

const PARALLEL = 12;
/** Maximum number of ids, and of blocks of 128 ids, whose prospects are in memory at the same time. */
const IDS_TOGETHER = 2_048;
const BLOCKS_TOGETHER = 24;
/** A Query reads at least four rows for the price of a single read, so it is cheaper if a quarter of the ids in its range are needed. */
const ROWS_PER_UNIT = 4;

interface Span {
  readonly ids: readonly number[];
  readonly first: number;
  readonly last: number;
}

const isDense = ({ ids, first, last }: Span): boolean => ids.length * ROWS_PER_UNIT > last - first;

async function* readsOfIds(table: Table, companyId: number, ids: readonly number[]): AsyncGenerator<Item[]> {
  for (let next = 0; next < ids.length; next += IDS_TOGETHER) {
    const spans = [...Map.groupBy(ids.slice(next, next + IDS_TOGETHER), blockOf).values()].map(
      (own): Span => ({ ids: own, first: at(own, 0), last: at(own, own.length - 1) }),
    );
    const single = spans.filter((span) => !isDense(span)).flatMap((span) => span.ids);
    yield await table.batchGet(single.map((id) => keys.prospect(companyId, id)));
    yield* inTurns(spans.filter(isDense), ({ first, last }) => prospectsBetween(table, companyId, first, last));
  }
}

async function* readsOfCompany(table: Table, companyId: number, blockLimit: number): AsyncGenerator<Item[]> {
  const blocks = await publishedBlocks(table, keys.prospectRanges(companyId));
  if (blocks.length > blockLimit) {
    throw tooMany(`${blockLimit} blocks of ${IDS_PER_PARTITION} ids, which may hold few prospects each`);
  }
  yield* inTurns(blocks, (block) => {
    const first = block * IDS_PER_PARTITION;
    return prospectsBetween(table, companyId, first, first + IDS_PER_PARTITION - 1);
  });
}

/** Reads a few entries at a time, so that the memory does not grow with their number. */
async function* inTurns<T>(entries: readonly T[], read: (entry: T) => Promise<Item[]>): AsyncGenerator<Item[]> {
  for (let at = 0; at < entries.length; at += BLOCKS_TOGETHER) {
    yield (await mapConcurrently(entries.slice(at, at + BLOCKS_TOGETHER), PARALLEL, read)).flat();
  }
}

const prospectsBetween = (table: Table, companyId: number, first: number, last: number): Promise<Item[]> =>
  Array.fromAsync(table.query(keys.prospectSpan(companyId, first, last)));
