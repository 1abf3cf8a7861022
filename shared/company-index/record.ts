/** The records of a company in the form that the index stores, and the table reads that a rebuild of the index needs. */

/** The searchable fields of a prospect. The index may receive several versions in any order, and the highest version counts. */
export interface IndexRow {
  readonly id: number;
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly statusId: number | null;
  readonly assignedToUserId: number | null;
  readonly tagIds: readonly number[];
  /** Trimmed and case-folded. */
  readonly city: string | null;
  readonly lat: number | null;
  readonly lng: number | null;
  /** All searchable texts of the prospect except notes. Case-folded, one text per line. */
  readonly text: string;
  /** The digits of both phone numbers, one number per line. */
  readonly phoneDigits: string;
}

/** Marks a deleted prospect. It hides all lower versions of the prospect. */
export interface Tombstone {
  readonly id: number;
  readonly version: number;
  readonly deleted: true;
}

export type IndexEntry = IndexRow | Tombstone;

export const isTombstone = (entry: IndexEntry): entry is Tombstone => "deleted" in entry;

/** The case-folded text of a note. */
export interface NoteText {
  readonly prospectId: number;
  readonly noteId: number;
  readonly version: number;
  readonly text: string;
}

/** A changed note. `text` is null if the note was deleted. The highest version of a note counts. */
export type NoteEntry = Omit<NoteText, "text"> & { readonly text: string | null };

export interface NoteRef {
  readonly prospectId: number;
  readonly noteId: number;
}

export interface SomeRecords {
  readonly prospects: readonly IndexEntry[];
  /** Notes of deleted prospects are included. A deleted note has no row and is not included. */
  readonly notes: readonly NoteText[];
}

/** Reads records from the table. All reads are strongly consistent. */
export interface Records {
  /**
   * Reads every prospect that has a row when the read begins, including deleted prospects. Each result has some prospects with all of their
   * notes.
   */
  readAll(companyId: number): AsyncIterable<SomeRecords>;
  /** Reads the given records. Omits records without a row. */
  readSome(companyId: number, prospects: readonly number[], notes: readonly NoteRef[]): Promise<SomeRecords>;
}
