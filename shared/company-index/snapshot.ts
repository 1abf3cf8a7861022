/** One version of a company's index in memory, as far as reads have needed it so far. */
import type { Criteria } from "#shared/company-index/criteria.ts";
import { LoadedSegment } from "#shared/company-index/loaded-segment.ts";
import type { Manifest, Run, SegmentEntry } from "#shared/company-index/manifest.ts";
import { canMeet } from "#shared/company-index/match.ts";
import type { IndexEntry, NoteEntry } from "#shared/company-index/row.ts";
import { decodeNotes, decodeOverrides } from "#shared/company-index/run.ts";
import { type Aside, fewOverridesOf, noAside } from "#shared/company-index/run-pieces.ts";
import { decodeGeo, decodeMain, decodeText } from "#shared/company-index/segment.ts";
import { SegmentTexts } from "#shared/company-index/segment-texts.ts";
import { type Piece, readPieces } from "#shared/company-index/store.ts";
import {
  deadRows,
  deadUnder,
  type IndexView,
  newestUnflushed,
  type RunsInView,
  runsInView,
} from "#shared/company-index/view.ts";
import type { Table } from "#shared/db/table.ts";

/** A piece that is not in memory yet, and what becomes of its bytes. */
interface Load {
  readonly piece: Piece;
  readonly keep: (bytes: Uint8Array, label: string) => void;
}

export class Snapshot {
  readonly manifest: Manifest;
  readonly #companyId: number;
  readonly #segments = new Map<string, LoadedSegment>();
  readonly #overrides = new Map<string, Aside["overrides"]>();
  readonly #looseNotes = new Map<string, Aside["looseNotes"]>();
  readonly #dead = new Map<string, Uint8Array | undefined>();
  #runs: RunsInView | undefined;
  #runsWithNotes: RunsInView | undefined;

  /** Takes over what an earlier version of the same company's index has in memory. */
  constructor(companyId: number, manifest: Manifest, earlier: Snapshot | undefined) {
    this.#companyId = companyId;
    this.manifest = manifest;
    if (earlier === undefined) return;
    for (const run of manifest.runs) {
      carry(earlier.#overrides, this.#overrides, run.id);
      carry(earlier.#looseNotes, this.#looseNotes, run.id);
      for (const { id } of run.segments) carry(earlier.#segments, this.#segments, id);
    }
  }

  /** The overrides of a run; those that stand in its sheet are decoded when they are asked for first. */
  #overridesOf(run: Run): Aside["overrides"] {
    const overrides = this.#overrides.get(run.id) ?? fewOverridesOf(run);
    this.#overrides.set(run.id, overrides);
    return overrides;
  }

  /** Whether it is of the version that consists of these runs. */
  holds(manifest: readonly string[]): boolean {
    const { runs } = this.manifest;
    return runs.length === manifest.length && runs.every(({ id }, age) => id === manifest[age]);
  }

  /** As the cache counts them. */
  get bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments.values()) bytes += segment.bytes + segment.count;
    for (const { prospects, notes } of this.#overrides.values())
      bytes += 42 * (prospects.ids.length + notes.ids.length);
    for (const notes of this.#looseNotes.values()) for (const { text } of notes) bytes += 100 + 2 * text.length;
    return bytes;
  }

  /** Loads what the criteria look at and is not here yet: one round, or none. What has come is decoded while the rest is on its way. */
  async load(table: Table, criteria: Criteria): Promise<void> {
    const batches = batchesOf(this.#missing(criteria));
    const work = async (): Promise<void> => {
      for (let loads = batches.shift(); loads !== undefined; loads = batches.shift()) await this.#loadAll(table, loads);
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
  }

  async #loadAll(table: Table, loads: readonly Load[]): Promise<void> {
    const pieces = loads.map(({ piece }) => piece);
    const bytes = await readPieces(table, this.#companyId, pieces);
    // A segment's main columns come before its other ones.
    for (const [i, { piece, keep }] of loads.entries()) {
      keep(bytes[i] ?? new Uint8Array(), `${piece.name} of ${piece.owner} of company ${this.#companyId}`);
      // Stored bytes are of no use any more, and many are decoded one after the other.
      bytes[i] = new Uint8Array();
    }
  }

  *#missing(criteria: Criteria): Generator<Load> {
    const searches = criteria.words.length > 0;
    for (const { id, overrides, looseNotes, segments } of this.manifest.runs) {
      if (overrides > 0 && !this.#overrides.has(id)) {
        yield {
          piece: { owner: id, name: "overrides", parts: overrides },
          keep: (bytes, label) => this.#overrides.set(id, decodeOverrides(label, bytes)),
        };
      }
      if (searches && looseNotes > 0 && !this.#looseNotes.has(id)) {
        yield {
          piece: { owner: id, name: "notes", parts: looseNotes },
          keep: (bytes, label) => this.#looseNotes.set(id, decodeNotes(label, bytes)),
        };
      }
      for (const entry of segments)
        if (searches || canMeet(entry.zone, criteria)) yield* this.#missingOf(entry, criteria);
    }
  }

  *#missingOf(entry: SegmentEntry, criteria: Criteria): Generator<Load> {
    const { id, parts } = entry;
    const loaded = this.#segments.get(id);
    const segment = (): LoadedSegment => {
      const found = this.#segments.get(id);
      if (found === undefined) throw new Error("a segment's other columns came before its main ones");
      return found;
    };
    if (loaded === undefined) {
      yield {
        piece: { owner: id, name: "main", parts: parts.main },
        keep: (bytes, label) => {
          // Another read may have brought it meanwhile, with more columns.
          if (!this.#segments.has(id)) this.#segments.set(id, new LoadedSegment(entry, decodeMain(label, bytes)));
        },
      };
    }
    const looksAtPlaces = criteria.box !== undefined || criteria.onMap === true;
    if (looksAtPlaces && loaded?.geo === undefined) {
      yield {
        piece: { owner: id, name: "geo", parts: parts.geo },
        keep: (bytes, label) => {
          segment().geo = decodeGeo(label, bytes);
        },
      };
    }
    if (criteria.words.length > 0 && loaded?.text === undefined) {
      yield {
        piece: { owner: id, name: "text", parts: parts.text },
        keep: (bytes, label) => {
          segment().text ??= new SegmentTexts(decodeText(label, bytes));
        },
      };
    }
  }

  /** What a read with these criteria sees, after `load` with the same. */
  view(criteria: Criteria, entries: Iterable<IndexEntry>, notes: Iterable<NoteEntry>): IndexView {
    const runs = this.#known(criteria);
    const delta = newestUnflushed(runs, entries, notes);
    const segments = this.manifest.runs.flatMap((run, age) =>
      run.segments.flatMap((entry) => {
        const segment = this.#segments.get(entry.id);
        const isNeeded = criteria.words.length > 0 || canMeet(entry.zone, criteria);
        if (!isNeeded || segment === undefined) return [];
        return [{ segment, age, dead: deadUnder(segment, this.#deadOf(segment, age, runs), delta) }];
      }),
    );
    return { ...runs, segments, delta };
  }

  /** Loose notes are there once a search has loaded them. */
  #known({ words }: Criteria): RunsInView {
    if (words.length > 0) {
      this.#runsWithNotes ??= this.#runsInView();
      return this.#runsWithNotes;
    }
    this.#runs ??= this.#runsInView();
    return this.#runs;
  }

  #runsInView(): RunsInView {
    return runsInView(
      this.manifest.runs.map((run) => ({
        overrides: this.#overridesOf(run),
        looseNotes: this.#looseNotes.get(run.id) ?? noAside.looseNotes,
      })),
    );
  }

  #deadOf(segment: LoadedSegment, age: number, { prospectVersions }: RunsInView): Uint8Array | undefined {
    if (this.#dead.has(segment.entry.id)) return this.#dead.get(segment.entry.id);
    const dead = deadRows(segment, age, prospectVersions);
    this.#dead.set(segment.entry.id, dead);
    return dead;
  }
}

/** Calls at a time: more would only wait for a socket. */
const PARALLEL = 40;

/** Items of the table that are asked for in one call: what comes at once is in memory twice, as it is stored and as it is used. */
const BATCH_PARTS = 32;

/** All that is loaded of a segment is in one of them. */
function batchesOf(loads: Iterable<Load>): Load[][] {
  const batches: Load[][] = [];
  let parts = BATCH_PARTS;
  let owner = "";
  for (const load of loads) {
    if (parts >= BATCH_PARTS && load.piece.owner !== owner) {
      batches.push([]);
      parts = 0;
    }
    batches.at(-1)?.push(load);
    parts += load.piece.parts;
    owner = load.piece.owner;
  }
  return batches;
}

function carry<T>(from: ReadonlyMap<string, T>, to: Map<string, T>, id: string): void {
  const found = from.get(id);
  if (found !== undefined) to.set(id, found);
}
