/** The records of a company as the index stores them, and the reads that a rebuild needs. */

/** The searchable fields of a prospect. The entry with the highest version of a prospect counts, in whatever order entries arrive. */
export interface IndexRow {
  readonly id: number;
  /** Version of the prospect's row. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly statusId: number | null;
  readonly assignedToUserId: number | null;
  readonly tagIds: readonly number[];
  /** Trimmed and caseless. */
  readonly city: string | null;
  readonly lat: number | null;
  readonly lng: number | null;
  /** All texts that a search covers, except notes: caseless, one per line. */
  readonly text: string;
  /** The digits of both phones, one phone per line. */
  readonly phoneDigits: string;
}

/** A deleted prospect: hides all lower versions of its row. */
export interface Tombstone {
  readonly id: number;
  readonly version: number;
  readonly deleted: true;
}

export type IndexEntry = IndexRow | Tombstone;

export const isTombstone = (entry: IndexEntry): entry is Tombstone => "deleted" in entry;

/** The text of a note, caseless. */
export interface NoteText {
  readonly prospectId: number;
  readonly noteId: number;
  readonly version: number;
  readonly text: string;
}

/** A note as it was written; null if it was deleted. The higher version counts here too. */
export type NoteEntry = Omit<NoteText, "text"> & { readonly text: string | null };

/** A note and its prospect. */
export interface NoteRef {
  readonly prospectId: number;
  readonly noteId: number;
}

export interface SomeRecords {
  readonly prospects: readonly IndexEntry[];
  /** Includes notes of deleted prospects. Deleted notes have no row. */
  readonly notes: readonly NoteText[];
}

/** All reads are strongly consistent. */
export interface Records {
  /** Every prospect that has a row when the read begins, deleted prospects included. All notes of a prospect are in the same result. */
  readAll(companyId: number): AsyncIterable<SomeRecords>;
  /** Records without a row are left out. */
  readSome(companyId: number, prospects: readonly number[], notes: readonly NoteRef[]): Promise<SomeRecords>;
}
