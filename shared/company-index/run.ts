/** What a run holds beside its segments: which versions it knows, and the notes whose prospects it does not hold. */
import { ByteReader, ByteWriter } from "#shared/company-index/bytes.ts";
import { readNumbers, writeNumbers } from "#shared/company-index/columns.ts";
import { compress, decompress } from "#shared/company-index/compress.ts";
import type { NoteText } from "#shared/company-index/row.ts";
import { readTexts, writeTexts } from "#shared/company-index/segment.ts";
import type { NewestVersions } from "#shared/company-index/versions.ts";

/** Records and their versions, side by side. */
export interface Versions {
  readonly ids: Float64Array;
  readonly versions: Float64Array;
}

/** What makes older versions elsewhere dead: all rows, tombstones and notes of a run that is not the oldest. */
export interface Overrides {
  readonly prospects: Versions;
  readonly notes: Versions;
}

const none: Versions = { ids: new Float64Array(), versions: new Float64Array() };
export const noOverrides: Overrides = { prospects: none, notes: none };

interface Versioned {
  readonly id: number;
  readonly version: number;
}

export function encodeOverrides(prospects: readonly Versioned[], notes: readonly Versioned[]): Uint8Array {
  const into = new ByteWriter();
  for (const records of [prospects, notes]) {
    const sorted = records.toSorted((a, b) => a.id - b.id);
    into.integer(sorted.length);
    writeNumbers(
      into,
      sorted.map(({ id }) => id),
    );
    writeNumbers(
      into,
      sorted.map(({ version }) => version),
    );
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
  const numbers = (field: (note: NoteText) => number): void => writeNumbers(into, notes.map(field));
  into.integer(notes.length);
  numbers(({ prospectId }) => prospectId);
  numbers(({ noteId }) => noteId);
  numbers(({ version }) => version);
  writeTexts(
    into,
    notes.map(({ text }) => text),
  );
  return compress(into.finish());
}

export const decodeNotes = (label: string, compressed: Uint8Array): NoteText[] =>
  decompress(label, compressed, (raw) => {
    const from = new ByteReader(raw);
    const count = from.integer();
    const [prospectIds, noteIds] = [readNumbers(from, count), readNumbers(from, count)];
    const versions = readNumbers(from, count);
    const { bytes, starts } = readTexts(from, count);
    return Array.from({ length: count }, (_, i) => ({
      prospectId: prospectIds[i] ?? 0,
      noteId: noteIds[i] ?? 0,
      version: versions[i] ?? 0,
      text: bytes.toString("utf8", starts[i], (starts[i + 1] ?? 1) - 1),
    }));
  });

/** Takes the versions of a run of this age into account. */
export function addAll(into: NewestVersions, { ids, versions }: Versions, age: number): void {
  for (const [i, id] of ids.entries()) into.add(id, versions[i] ?? 0, age);
}
