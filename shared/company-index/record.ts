/** The records of a company in the form that the index stores, and the reads of the table that a rebuild needs. */

/** The searchable fields of a prospect. Entries may arrive in any order; the entry with the highest version counts. */
export interface IndexRow {
  readonly id: number;
  /** The version of the prospect's row in the table. */
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
  /** All texts of the prospect that a search covers, except notes: case-folded, one text per line. */
  readonly text: string;
  /** The digits of both phone numbers, one number per line. */
  readonly phoneDigits: string;
}

/** A deleted prospect. The tombstone hides all lower versions of the prospect. */
export interface Tombstone {
  readonly id: number;
  readonly version: number;
  readonly deleted: true;
}

export type IndexEntry = IndexRow | Tombstone;

export const isTombstone = (entry: IndexEntry): entry is Tombstone => "deleted" in entry;

/** The text of a note, case-folded. */
export interface NoteText {
  readonly prospectId: number;
  readonly noteId: number;
  readonly version: number;
  readonly text: string;
}

/** A written note, or a deleted one if `text` is null. As for prospects, the entry with the highest version counts. */
export type NoteEntry = Omit<NoteText, "text"> & { readonly text: string | null };

/** The ids of a note and its prospect. */
export interface NoteRef {
  readonly prospectId: number;
  readonly noteId: number;
}

export interface SomeRecords {
  readonly prospects: readonly IndexEntry[];
  /** The notes that have a row, including notes of deleted prospects. A deleted note has no row. */
  readonly notes: readonly NoteText[];
}

/** Reads the records from the table. All reads are strongly consistent. */
export interface Records {
  /** Reads every prospect that has a row at the beginning, including deleted prospects. All notes of a prospect are in the same result. */
  readAll(companyId: number): AsyncIterable<SomeRecords>;
  /** Reads the given records. Omits records without a row. */
  readSome(companyId: number, prospects: readonly number[], notes: readonly NoteRef[]): Promise<SomeRecords>;
}
