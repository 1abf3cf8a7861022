/** One version of a company index in memory. It contains only the data that reads have needed so far. */
import { mapConcurrently } from "#shared/all-ended.ts";
import { at } from "#shared/at.ts";
import { type Criteria, canMeet, needsGeo, needsText } from "#shared/company-index/criteria.ts";
import type { Manifest, Part, SegmentEntry } from "#shared/company-index/manifest.ts";
import { inlineOverridesOf, type PartOverrides, type Piece, readPieces } from "#shared/company-index/pieces.ts";
import {
  deadRows,
  deadUnder,
  type IndexView,
  LoadedSegment,
  type SegmentInView,
  SegmentTexts,
} from "#shared/company-index/search/loaded-segment.ts";
import { decodeGeo, decodeMain, decodeText, type Group, groups } from "#shared/company-index/segment.ts";
import {
  type Delta,
  decodeNotes,
  decodeOverrides,
  type FlushedVersions,
  flushedVersions,
} from "#shared/company-index/versions.ts";
import type { Reads } from "#shared/db/reads.ts";

export class LoadedIndex {
  readonly manifest: Manifest;
  readonly #companyId: number;
  readonly #segments = new Map<string, LoadedSegment>();
  readonly #overrides = new Map<string, PartOverrides["overrides"]>();
  readonly #looseNotes = new Map<string, PartOverrides["looseNotes"]>();
  readonly #dead = new Map<string, Uint8Array | undefined>();
  #bytes: number | undefined;
  #makesWords = false;
  #readers = 0;
  #inView: readonly SegmentInView[] | undefined;
  #versions: FlushedVersions | undefined;

  constructor(companyId: number, manifest: Manifest, earlier: LoadedIndex | undefined) {
    this.#companyId = companyId;
    this.manifest = manifest;
    if (earlier === undefined) return;
    for (const part of manifest.parts) {
      reuse(earlier.#overrides, this.#overrides, part.id);
      reuse(earlier.#looseNotes, this.#looseNotes, part.id);
      for (const { id } of part.segments) reuse(earlier.#segments, this.#segments, id);
    }
  }

  #overridesOf(part: Part): PartOverrides["overrides"] {
    const overrides = this.#overrides.get(part.id) ?? inlineOverridesOf(part);
    this.#overrides.set(part.id, overrides);
    return overrides;
  }

  consistsOf(manifest: readonly string[]): boolean {
    const { parts } = this.manifest;
    return parts.length === manifest.length && parts.every(({ id }, age) => id === manifest[age]);
  }

  get bytes(): number {
    this.#bytes ??= this.#countBytes();
    return this.#bytes;
  }

  #countBytes(): number {
    let bytes = 0;
    for (const segment of this.#segments.values()) bytes += segment.bytes + segment.count;
    for (const { prospects, notes } of this.#overrides.values())
      bytes += 42 * (prospects.ids.length + notes.ids.length);
    for (const notes of this.#looseNotes.values()) for (const { text } of notes) bytes += 100 + 2 * text.length;
    return bytes;
  }

  /** Keeps the texts in memory until the returned function is called. */
  beginRead(): () => void {
    this.#readers++;
    return () => {
      this.#readers--;
    };
  }

  /** Removes the texts from memory, unless a read is in progress. Returns the number of freed bytes. */
  dropTexts(): number {
    const hasTexts = this.#looseNotes.size > 0 || [...this.#segments.values()].some(({ text }) => text !== undefined);
    if (this.#readers > 0 || !hasTexts) return 0;
    const before = this.bytes;
    // Replace the segment objects and do not change them: a read of an earlier version of the index may still use them.
    for (const [id, segment] of this.#segments) this.#segments.set(id, segment.withoutText());
    this.#looseNotes.clear();
    this.#versions = undefined;
    this.#inView = undefined;
    this.#bytes = undefined;
    return before - this.bytes;
  }

  /** Discards the cached size `bytes` if the last or this search may build word indexes, because word indexes change the size. */
  #countWords(): void {
    const grew = this.#makesWords;
    this.#makesWords = [...this.#segments.values()].some(({ text }) => text !== undefined && text.unindexedBytes > 0);
    if (grew || this.#makesWords) this.#bytes = undefined;
  }

  async load(table: Reads, criteria: Criteria): Promise<void> {
    if (criteria.words.length > 0) this.#countWords();
    const isMore = await loadAll(table, this.#companyId, this.#missing(criteria));
    if (isMore) this.#bytes = undefined;
  }

  *#missing(criteria: Criteria): Generator<Load> {
    const searches = criteria.words.length > 0;
    for (const { id, overrides, looseNotes, segments } of this.manifest.parts) {
      if (overrides > 0 && !this.#overrides.has(id)) {
        yield {
          piece: { owner: id, name: "overrides", count: overrides },
          keep: (bytes, label) => this.#overrides.set(id, decodeOverrides(label, bytes)),
        };
      }
      if (searches && looseNotes > 0 && !this.#looseNotes.has(id)) {
        yield {
          piece: { owner: id, name: "notes", count: looseNotes },
          keep: (bytes, label) => {
            this.#looseNotes.set(id, decodeNotes(label, bytes));
            this.#versions = undefined;
          },
        };
      }
      for (const entry of segments) {
        if (searches || canMeet(entry.zone, criteria)) yield* this.#missingOf(entry, criteria);
      }
    }
  }

  *#missingOf(entry: SegmentEntry, criteria: Criteria): Generator<Load> {
    const { id, counts } = entry;
    const loaded = this.#segments.get(id);
    const isMissing = {
      main: loaded === undefined,
      geo: needsGeo(criteria) && loaded?.geo === undefined,
      text: needsText(criteria) && loaded?.text === undefined,
    };
    for (const group of groups) {
      if (!isMissing[group]) continue;
      yield {
        piece: { owner: id, name: group, count: counts[group] },
        keep: (bytes, label) => this.#keep(entry, group, bytes, label),
      };
    }
  }

  /** Decodes and keeps columns of a segment. A concurrent read may already have loaded the same columns. */
  #keep(entry: SegmentEntry, group: Group, bytes: Uint8Array, label: string): void {
    const segment = this.#segments.get(entry.id);
    if (segment === undefined) {
      if (group !== "main") throw new Error("the main columns of a segment must be loaded first");
      this.#segments.set(entry.id, new LoadedSegment(entry, decodeMain(label, bytes)));
    } else if (group === "geo") segment.geo = decodeGeo(label, bytes);
    else if (group === "text") segment.text ??= new SegmentTexts(decodeText(label, bytes));
  }

  /** Returns the loaded segments and the unflushed entries. Call `load` first. The result may include segments without a match. */
  view(delta: Delta): IndexView {
    const parts = this.known;
    const flushed = this.#flushed(parts);
    const segments =
      delta.prospects.size === 0
        ? flushed
        : flushed.map((inView) => {
            const dead = deadUnder(inView.segment, inView.dead, delta);
            return dead === inView.dead ? inView : { ...inView, dead };
          });
    return { ...parts, segments, delta };
  }

  /** Marks the rows that newer parts replace. The result is cached until another segment is loaded or the texts are dropped. */
  #flushed(parts: FlushedVersions): readonly SegmentInView[] {
    if (this.#inView?.length === this.#segments.size) return this.#inView;
    const inView = this.manifest.parts.flatMap((part, age) =>
      part.segments.flatMap(({ id }) => {
        const segment = this.#segments.get(id);
        return segment === undefined ? [] : [{ segment, age, dead: this.#deadOf(segment, age, parts) }];
      }),
    );
    this.#inView = inView;
    return inView;
  }

  /** The newest versions in the parts. Call `load` first. Loose notes are included only if a search has loaded them. */
  get known(): FlushedVersions {
    this.#versions ??= flushedVersions(
      this.manifest.parts.map((part) => ({
        overrides: this.#overridesOf(part),
        looseNotes: this.#looseNotes.get(part.id) ?? [],
      })),
    );
    return this.#versions;
  }

  #deadOf(segment: LoadedSegment, age: number, { prospectVersions }: FlushedVersions): Uint8Array | undefined {
    if (this.#dead.has(segment.entry.id)) return this.#dead.get(segment.entry.id);
    const dead = deadRows(segment, age, prospectVersions);
    this.#dead.set(segment.entry.id, dead);
    return dead;
  }
}

function reuse<T>(from: ReadonlyMap<string, T>, to: Map<string, T>, id: string): void {
  const found = from.get(id);
  if (found !== undefined) to.set(id, found);
}

export interface Load {
  readonly piece: Piece;
  readonly keep: (bytes: Uint8Array, label: string) => void;
}

/** Loads the pieces in concurrent batches. Returns false if there is nothing to load. */
async function loadAll(table: Reads, companyId: number, loads: Iterable<Load>): Promise<boolean> {
  const batches = batchesOf(loads);
  await mapConcurrently(batches, PARALLEL, (batch) => loadBatch(table, companyId, batch));
  return batches.length > 0;
}

async function loadBatch(table: Reads, companyId: number, loads: readonly Load[]): Promise<void> {
  const pieces = loads.map(({ piece }) => piece);
  const bytes = await readPieces(table, companyId, pieces);
  for (const [i, { piece, keep }] of loads.entries()) {
    keep(at(bytes, i), `${piece.name} of ${piece.owner} of company ${companyId}`);
    bytes[i] = new Uint8Array();
  }
}

/** Maximum number of concurrent batch reads. The DynamoDB client has at most 50 connections. */
const PARALLEL = 40;

/** Approximate number of items in a batch. A larger batch needs more memory, because its items are there both compressed and decoded. */
const BATCH_ITEMS = 32;

/** All pieces of a segment are in the same batch, so that the segment's main columns can be decoded first. */
function batchesOf(loads: Iterable<Load>): Load[][] {
  const batches: Load[][] = [];
  let items = BATCH_ITEMS;
  let owner = "";
  for (const load of loads) {
    if (items >= BATCH_ITEMS && load.piece.owner !== owner) {
      batches.push([]);
      items = 0;
    }
    batches.at(-1)?.push(load);
    items += load.piece.count;
    owner = load.piece.owner;
  }
  return batches;
}
