/** The records of a company as its search index stores them, and the interface for reading them from the table during a rebuild. */

/** The searchable fields of a prospect. The index may contain several versions of a prospect, and only the highest version is valid. */
export interface IndexRow {
  readonly id: number;
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** The time of the prospect's last change, in milliseconds since 1970. Changes of its notes and appointments do not affect it. */
  readonly updatedAt: number;
  readonly statusId: number | null;
  readonly assignedToUserId: number | null;
  readonly tagIds: readonly number[];
  /** The city name in trimmed and case-folded form. */
  readonly city: string | null;
  readonly lat: number | null;
  readonly lng: number | null;
  /** All searchable text of the prospect except its notes. It is case-folded and has one field per line. */
  readonly text: string;
  /** The digits of the prospect's phone numbers, with one number per line. */
  readonly phoneDigits: string;
}

/** The entry of a deleted prospect. It hides all lower versions of the prospect. */
export interface Tombstone {
  readonly id: number;
  readonly version: number;
  readonly deleted: true;
}

export type IndexEntry = IndexRow | Tombstone;

export const isTombstone = (entry: IndexEntry): entry is Tombstone => "deleted" in entry;

/** The searchable text of a note, in case-folded form. */
export interface NoteText {
  readonly prospectId: number;
  readonly noteId: number;
  readonly version: number;
  readonly text: string;
}

/** A changed note. `text` is null if the note was deleted. The highest version of a note is valid. */
export type NoteEntry = Omit<NoteText, "text"> & { readonly text: string | null };

export interface NoteRef {
  readonly prospectId: number;
  readonly noteId: number;
}

/** Some prospects and notes of a company. */
export interface SomeRecords {
  readonly prospects: readonly IndexEntry[];
  /** Includes notes of deleted prospects. Does not include deleted notes, because a deleted note has no row in the table. */
  readonly notes: readonly NoteText[];
}

/** Reads prospects and notes from the table. All reads are strongly consistent. */
export interface Records {
  /**
   * Yields every prospect that has a row when the read begins, including deleted prospects. Each yielded value contains several prospects
   * and all their notes.
   */
  readAll(companyId: number): AsyncIterable<SomeRecords>;
  /** Reads the given records. The result omits records that have no row. */
  readSome(companyId: number, prospects: readonly number[], notes: readonly NoteRef[]): Promise<SomeRecords>;
}
