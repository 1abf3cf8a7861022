/** The records of a company as its company index stores them, and the reads by which a rebuild gets them from the table. */

/** An appointment that was upcoming when the appointments of its prospect last changed. The user 0 means that there is no user. */
export type Ahead = readonly [startMs: number, createdBy: number, assignedTo: number];

/** A prospect. The index may contain several versions of it, of which only the highest is valid. */
export interface IndexRow {
  readonly id: number;
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Milliseconds since 1970. Changes of notes and appointments do not affect it. */
  readonly updatedAt: number;
  readonly statusId: number | null;
  readonly assignedToUserId: number | null;
  readonly tagIds: readonly number[];
  /** The name in the form that the function `folded` returns. */
  readonly city: string | null;
  readonly lat: number | null;
  readonly lng: number | null;
  readonly sourceId: string | null;
  readonly appointments: number;
  readonly ahead: readonly Ahead[];
  /** All searchable text except notes, in the form that `searchable` returns and with one field per line. */
  readonly text: string;
  /** One number per line, between `=` signs. */
  readonly phoneDigits: string;
}

/** Puts `=` before a text, so that an empty text differs from a missing one. */
export const marked = (text: string | null): string => (text === null ? "" : `=${text}`);
export const unmarked = (text: string): string | null => (text === "" ? null : text.slice(1));

/** The entry of a deleted prospect. It hides all lower versions of the prospect. */
export interface Tombstone {
  readonly id: number;
  readonly version: number;
  readonly deleted: true;
}

export type IndexEntry = IndexRow | Tombstone;

export const isTombstone = (entry: IndexEntry): entry is Tombstone => "deleted" in entry;

/** `text` is in the form that the function `searchable` returns. */
export interface NoteText {
  readonly prospectId: number;
  readonly noteId: number;
  readonly version: number;
  readonly text: string;
}

/** `text` is null if the note was deleted. Only the highest version of a note is valid. */
export type NoteEntry = Omit<NoteText, "text"> & { readonly text: string | null };

export interface NoteRef {
  readonly prospectId: number;
  readonly noteId: number;
}

export interface SomeRecords {
  readonly prospects: readonly IndexEntry[];
  /** Includes notes of deleted prospects, but no deleted notes, because these have no row. */
  readonly notes: readonly NoteText[];
}

/** All reads are strongly consistent. */
export interface Records {
  /** Yields every prospect that has a row when the read begins, even a deleted one. A prospect and all its notes are in the same value. */
  readAll(companyId: number): AsyncIterable<SomeRecords>;
  /** Omits records that have no row. */
  readSome(companyId: number, prospects: readonly number[], notes: readonly NoteRef[]): Promise<SomeRecords>;
}
