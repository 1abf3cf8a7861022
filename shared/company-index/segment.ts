/** The binary format of a segment. The columns of a segment are in three groups, so that a read loads only what its filters need. */
import { doubleAt, uint32At } from "#shared/at.ts";
import {
  ByteReader,
  ByteWriter,
  type Coded,
  compress,
  decompress,
  idOrZero,
  readCoded,
  readDegrees,
  readNumbers,
  valueAt,
  writeCoded,
  writeDegrees,
  writeNumbers,
} from "#shared/company-index/encoding.ts";
import { type IndexRow, marked, type NoteText, unmarked } from "#shared/company-index/record.ts";

/** A prospect with those of its notes that are stored in the same segment. */
export interface RowWithNotes {
  readonly row: IndexRow;
  readonly notes: readonly NoteText[];
}

export const groups = ["main", "geo", "text"] as const;
export type Group = (typeof groups)[number];

export interface MainColumns {
  readonly count: number;
  readonly ids: Float64Array;
  readonly versions: Float64Array;
  readonly createdAt: Float64Array;
  readonly statusId: Coded<number | null>;
  readonly assignedToUserId: Coded<number | null>;
  readonly city: Coded<string | null>;
  readonly tagIds: Coded<readonly number[]>;
  readonly appointments: Coded<Pick<IndexRow, "appointments" | "ahead">>;
}

/** The columns that only filters by place or by the time of the last change need. */
export interface GeoColumns {
  /** Degrees. A missing coordinate is NaN. */
  readonly lat: Float64Array;
  readonly lng: Float64Array;
  /** Milliseconds from the creation to the last change of each row. */
  readonly updatedAfter: Float64Array;
}

/** The texts of prospects and notes. For each row, the text of the prospect comes first, and the texts of its notes follow. */
export interface TextColumns extends Texts {
  readonly rowOf: Uint16Array;
  /** The id of the note, or 0 if the text belongs to a prospect. */
  readonly noteIds: Float64Array;
  readonly noteVersions: Float64Array;
  readonly digits: Buffer;
  /** The byte offset of each row's phone digits, and the end of the last row's digits. */
  readonly digitStarts: Uint32Array;
  readonly sourceId: Coded<string | null>;
}

export interface SegmentColumns {
  readonly main: MainColumns;
  readonly geo: GeoColumns;
  readonly text: TextColumns;
}

export function encodeSegment(entries: readonly RowWithNotes[]): Record<Group, Uint8Array> {
  const rows = entries.map(({ row }) => row);
  return {
    main: compress(encodeMain(rows)),
    geo: compress(encodeGeo(rows)),
    text: compress(encodeText(entries)),
  };
}

export const columnsOf = (label: string, { main, geo, text }: Record<Group, Uint8Array>): SegmentColumns => ({
  main: decodeMain(`main of ${label}`, main),
  geo: decodeGeo(`geo of ${label}`, geo),
  text: decodeText(`text of ${label}`, text),
});

function encodeMain(rows: readonly IndexRow[]): Uint8Array {
  const into = new ByteWriter();
  const idOrNull = (id: number | null): void => into.integer(idOrZero(id));
  into.integer(rows.length);
  writeNumbers(into, column(rows, "id"));
  writeNumbers(into, column(rows, "version"));
  writeNumbers(into, column(rows, "createdAt"));
  writeCoded(into, column(rows, "statusId"), (id) => id, idOrNull);
  writeCoded(into, column(rows, "assignedToUserId"), (id) => id, idOrNull);
  writeCoded(
    into,
    column(rows, "city"),
    (city) => city,
    (city) => into.text(marked(city)),
  );
  writeCoded(
    into,
    column(rows, "tagIds"),
    (ids) => ids.join(),
    (ids) => {
      into.integer(ids.length);
      for (const id of ids) into.integer(id);
    },
  );
  writeCoded(
    into,
    rows.map(({ appointments, ahead }) => ({ appointments, ahead })),
    ({ appointments, ahead }) => `${appointments}:${ahead.join()}`,
    ({ appointments, ahead }) => {
      into.integer(appointments);
      into.integer(ahead.length);
      for (const number of ahead.flat()) into.signed(number);
    },
  );
  return into.finish();
}

export const decodeMain = (label: string, compressed: Uint8Array): MainColumns =>
  decompress(label, compressed, (bytes) => {
    const from = new ByteReader(bytes);
    const idOrNull = (): number | null => from.integer() || null;
    const count = from.integer();
    return {
      count,
      ids: readNumbers(from, count),
      versions: readNumbers(from, count),
      createdAt: readNumbers(from, count),
      statusId: readCoded(from, count, idOrNull),
      assignedToUserId: readCoded(from, count, idOrNull),
      city: readCoded(from, count, () => unmarked(from.text())),
      tagIds: readCoded(from, count, () => Array.from({ length: from.integer() }, () => from.integer())),
      appointments: readCoded(from, count, () => ({
        appointments: from.integer(),
        ahead: Array.from({ length: from.integer() }, () => [from.signed(), from.signed(), from.signed()] as const),
      })),
    };
  });

function encodeGeo(rows: readonly IndexRow[]): Uint8Array {
  const into = new ByteWriter();
  into.integer(rows.length);
  writeDegrees(into, column(rows, "lat"));
  writeDegrees(into, column(rows, "lng"));
  for (const { createdAt, updatedAt } of rows) into.signed(updatedAt - createdAt);
  return into.finish();
}

export const decodeGeo = (label: string, compressed: Uint8Array): GeoColumns =>
  decompress(label, compressed, (bytes) => {
    const from = new ByteReader(bytes);
    const count = from.integer();
    const [lat, lng] = [readDegrees(from, count), readDegrees(from, count)];
    return { lat, lng, updatedAfter: Float64Array.from({ length: count }, () => from.signed()) };
  });

function encodeText(entries: readonly RowWithNotes[]): Uint8Array {
  const into = new ByteWriter();
  into.integer(entries.length);
  for (const { notes } of entries) into.integer(notes.length);
  const notes = entries.flatMap((entry) => entry.notes);
  const rows = entries.map(({ row }) => row);
  writeNumbers(into, column(notes, "noteId"));
  writeNumbers(into, column(notes, "version"));
  writeTexts(into, column(rows, "phoneDigits"));
  writeTexts(
    into,
    entries.flatMap((entry) => [entry.row.text, ...entry.notes.map(({ text }) => text)]),
  );
  writeCoded(
    into,
    column(rows, "sourceId"),
    (sourceId) => sourceId,
    (sourceId) => into.text(marked(sourceId)),
  );
  return into.finish();
}

export const decodeText = (label: string, compressed: Uint8Array): TextColumns =>
  decompress(label, compressed, (bytes) => {
    const from = new ByteReader(bytes);
    const noteCounts = Array.from({ length: from.integer() }, () => from.integer());
    const notes = noteCounts.reduce((sum, count) => sum + count, 0);
    const ids = readNumbers(from, notes);
    const versions = readNumbers(from, notes);
    const entries = noteCounts.length + notes;
    const rowOf = new Uint16Array(entries);
    const noteIds = new Float64Array(entries);
    const noteVersions = new Float64Array(entries);
    let entry = 0;
    let note = 0;
    for (const [row, count] of noteCounts.entries()) {
      rowOf[entry++] = row;
      for (let i = 0; i < count; i++, note++, entry++) {
        rowOf[entry] = row;
        noteIds[entry] = doubleAt(ids, note);
        noteVersions[entry] = doubleAt(versions, note);
      }
    }
    const digits = readTexts(from, noteCounts.length);
    const { bytes: texts, starts } = readTexts(from, entries);
    const sourceId = readCoded(from, noteCounts.length, () => unmarked(from.text()));
    const own = { bytes: texts, starts, rowOf, noteIds, noteVersions, sourceId };
    return { ...own, digits: digits.bytes, digitStarts: digits.starts };
  });

/** Writes a line break after each text. Search words contain no line break, so no match extends over two texts. */
export function writeTexts(into: ByteWriter, texts: readonly string[]): void {
  const encoded = texts.map((text) => Buffer.from(`${text}\n`));
  for (const { length } of encoded) into.integer(length);
  for (const bytes of encoded) into.raw(bytes);
}

interface Texts {
  readonly bytes: Buffer;
  /** The byte offset of each text, and the end of the last text. */
  readonly starts: Uint32Array;
}

export const textAt = ({ bytes, starts }: Texts, index: number): string =>
  bytes.toString("utf8", uint32At(starts, index), uint32At(starts, index + 1) - 1);

export function readTexts(from: ByteReader, count: number): Texts {
  const starts = new Uint32Array(count + 1);
  let length = 0;
  for (let i = 0; i < count; i++) {
    length += from.integer();
    starts[i + 1] = length;
  }
  return { bytes: Buffer.from(from.raw(length)), starts };
}

export const column = <T, K extends keyof T>(rows: readonly T[], field: K): T[K][] => rows.map((row) => row[field]);

export function* rowsOf({ main, geo, text }: SegmentColumns): Generator<RowWithNotes> {
  let entry = 0;
  for (let row = 0; row < main.count; row++) {
    const id = doubleAt(main.ids, row);
    const createdAt = doubleAt(main.createdAt, row);
    const own = textAt(text, entry++);
    const notes: NoteText[] = [];
    for (; text.rowOf[entry] === row; entry++) {
      const [noteId, version] = [doubleAt(text.noteIds, entry), doubleAt(text.noteVersions, entry)];
      notes.push({ prospectId: id, noteId, version, text: textAt(text, entry) });
    }
    yield {
      row: {
        id,
        version: doubleAt(main.versions, row),
        createdAt,
        updatedAt: createdAt + doubleAt(geo.updatedAfter, row),
        statusId: valueAt(main.statusId, row),
        assignedToUserId: valueAt(main.assignedToUserId, row),
        tagIds: valueAt(main.tagIds, row),
        city: valueAt(main.city, row),
        lat: degreesOrNull(doubleAt(geo.lat, row)),
        lng: degreesOrNull(doubleAt(geo.lng, row)),
        sourceId: valueAt(text.sourceId, row),
        ...valueAt(main.appointments, row),
        text: own,
        phoneDigits: textAt({ bytes: text.digits, starts: text.digitStarts }, row),
      },
      notes,
    };
  }
}

const degreesOrNull = (degrees: number): number | null => (Number.isNaN(degrees) ? null : degrees);
