/** Finds the newest version of each record in the parts and unflushed entries of a company index. */
import { doubleAt, uint32At } from "#shared/at.ts";
import {
  ByteReader,
  ByteWriter,
  compress,
  decompress,
  readNumbers,
  writeNumbers,
} from "#shared/company-index/encoding.ts";
import type { IndexEntry, NoteEntry, NoteText } from "#shared/company-index/record.ts";
import { column, readTexts, textAt, writeTexts } from "#shared/company-index/segment.ts";

const EMPTY = 0;

/** The newest version of each record, in a hash table of typed arrays. A million records need only 42 MB. */
export class NewestVersions {
  #ids = new Float64Array(64);
  #versions = new Float64Array(64);
  #ages = new Uint32Array(64);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** `age` is the position of the version's part in the list of parts. If two versions are equal, the one with the higher age stays. */
  add(id: number, version: number, age: number): void {
    if (this.#size * 2 >= this.#ids.length) this.#grow();
    const slot = this.#slotOf(id);
    if (this.#ids[slot] === EMPTY) {
      this.#ids[slot] = id;
      this.#size++;
    } else if (!isOlder(doubleAt(this.#versions, slot), uint32At(this.#ages, slot), version, age)) {
      return;
    }
    this.#versions[slot] = version;
    this.#ages[slot] = age;
  }

  /** Returns true if a newer version of the record than `version` was added, or the same version from a part with a higher `age`. */
  supersedes(id: number, version: number, age: number): boolean {
    const slot = this.#slotOf(id);
    return this.#ids[slot] === id && isOlder(version, age, doubleAt(this.#versions, slot), uint32At(this.#ages, slot));
  }

  versionOf(id: number): number {
    const slot = this.#slotOf(id);
    return this.#ids[slot] === id ? doubleAt(this.#versions, slot) : 0;
  }

  *[Symbol.iterator](): Generator<{ id: number; version: number; age: number }> {
    for (const [slot, id] of this.#ids.entries()) {
      if (id !== EMPTY) yield { id, version: doubleAt(this.#versions, slot), age: uint32At(this.#ages, slot) };
    }
  }

  #slotOf(id: number): number {
    const mask = this.#ids.length - 1;
    // Both 32-bit halves of the id are hashed, so that consecutive ids do not fill consecutive slots.
    let slot = (Math.imul(id % 0x100000000, 0x9e3779b1) ^ Math.imul(id / 0x100000000, 0x85ebca6b)) >>> 7;
    for (slot &= mask; this.#ids[slot] !== EMPTY && this.#ids[slot] !== id; slot = (slot + 1) & mask);
    return slot;
  }

  #grow(): void {
    const [ids, versions, ages] = [this.#ids, this.#versions, this.#ages];
    this.#ids = new Float64Array(ids.length * 2);
    this.#versions = new Float64Array(ids.length * 2);
    this.#ages = new Uint32Array(ids.length * 2);
    for (const [old, id] of ids.entries()) {
      if (id === EMPTY) continue;
      const slot = this.#slotOf(id);
      this.#ids[slot] = id;
      this.#versions[slot] = doubleAt(versions, old);
      this.#ages[slot] = uint32At(ages, old);
    }
  }
}

const isOlder = (version: number, age: number, thanVersion: number, thanAge: number): boolean =>
  version < thanVersion || (version === thanVersion && age < thanAge);

/** Two parallel arrays: the record at index i has the id `ids[i]` and the version `versions[i]`. */
export interface Versions {
  readonly ids: Float64Array;
  readonly versions: Float64Array;
}

/**
 * The ids and versions of a part's records, including deleted ones. Readers ignore lower versions of these records in other parts. The part
 * of an import, and the oldest part, usually have no overrides, because no other part or entry can contain a lower version.
 */
export interface Overrides {
  readonly prospects: Versions;
  readonly notes: Versions;
}

const none: Versions = { ids: new Float64Array(), versions: new Float64Array() };
export const noOverrides: Overrides = { prospects: none, notes: none };

export interface Versioned {
  readonly id: number;
  readonly version: number;
}

export function encodeOverrides(prospects: readonly Versioned[], notes: readonly Versioned[]): Uint8Array {
  const into = new ByteWriter();
  for (const records of [prospects, notes]) {
    const sorted = records.toSorted((a, b) => a.id - b.id);
    into.integer(sorted.length);
    writeNumbers(into, column(sorted, "id"));
    writeNumbers(into, column(sorted, "version"));
  }
  return compress(into.finish());
}

export const decodeOverrides = (label: string, compressed: Uint8Array): Overrides =>
  decompress(label, compressed, (bytes) => {
    const from = new ByteReader(bytes);
    const read = (): Versions => {
      const count = from.integer();
      return { ids: readNumbers(from, count), versions: readNumbers(from, count) };
    };
    return { prospects: read(), notes: read() };
  });

export function encodeNotes(notes: readonly NoteText[]): Uint8Array {
  const into = new ByteWriter();
  into.integer(notes.length);
  for (const field of ["prospectId", "noteId", "version"] as const) writeNumbers(into, column(notes, field));
  writeTexts(into, column(notes, "text"));
  return compress(into.finish());
}

export const decodeNotes = (label: string, compressed: Uint8Array): NoteText[] =>
  decompress(label, compressed, (raw) => {
    const from = new ByteReader(raw);
    const count = from.integer();
    const [prospectIds, noteIds] = [readNumbers(from, count), readNumbers(from, count)];
    const versions = readNumbers(from, count);
    const texts = readTexts(from, count);
    return Array.from({ length: count }, (_, i) => ({
      prospectId: doubleAt(prospectIds, i),
      noteId: doubleAt(noteIds, i),
      version: doubleAt(versions, i),
      text: textAt(texts, i),
    }));
  });

export function addAll(into: NewestVersions, { ids, versions }: Versions, age: number): void {
  for (const [i, id] of ids.entries()) into.add(id, doubleAt(versions, i), age);
}

export interface Delta {
  readonly prospects: ReadonlyMap<number, IndexEntry>;
  readonly notes: ReadonlyMap<number, NoteEntry>;
}

/** A note that was flushed without its prospect, whose row is in another part. */
export interface LooseNote extends NoteText {
  /** The position of the note's part in the list of parts. */
  readonly age: number;
}

/** The newest version of each record in the version overrides of the parts, and all loose notes. */
export interface FlushedVersions {
  readonly prospectVersions: NewestVersions;
  readonly noteVersions: NewestVersions;
  readonly looseNotes: readonly LooseNote[];
}

/** `parts` must be sorted from the oldest to the newest. */
export function flushedVersions(
  parts: readonly { overrides: Overrides; looseNotes: readonly NoteText[] }[],
): FlushedVersions {
  const prospectVersions = new NewestVersions();
  const noteVersions = new NewestVersions();
  const looseNotes: LooseNote[] = [];
  for (const [age, { overrides, looseNotes: notes }] of parts.entries()) {
    addAll(prospectVersions, overrides.prospects, age);
    addAll(noteVersions, overrides.notes, age);
    for (const note of notes) looseNotes.push({ ...note, age });
  }
  return { prospectVersions, noteVersions, looseNotes };
}

/** Returns the newest entry of each record, unless a part has a newer version. An entry with the same version as in a part is returned. */
export function newestUnflushed(
  { prospectVersions, noteVersions }: FlushedVersions,
  entries: Iterable<IndexEntry>,
  noteEntries: Iterable<NoteEntry>,
): Delta {
  return {
    prospects: newestOf(entries, ({ id }) => id, prospectVersions),
    notes: newestOf(noteEntries, ({ noteId }) => noteId, noteVersions),
  };
}

/** The age of an unflushed entry, which is newer than every part. */
const UNFLUSHED = Number.POSITIVE_INFINITY;

function newestOf<Entry extends { readonly version: number }>(
  entries: Iterable<Entry>,
  idOf: (entry: Entry) => number,
  flushed: NewestVersions,
): Map<number, Entry> {
  const newest = new Map<number, Entry>();
  for (const entry of entries) {
    const [id, known] = [idOf(entry), newest.get(idOf(entry))];
    const isNewer = known === undefined || known.version < entry.version;
    if (isNewer && !flushed.supersedes(id, entry.version, UNFLUSHED)) newest.set(id, entry);
  }
  return newest;
}
