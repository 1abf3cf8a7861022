/** The records of a company as the index knows them, and the reads that a rebuild needs of their owner. */

/** Versions decide: of two entries of the same prospect the one with the higher version holds, in whatever order they come. */
export interface IndexRow {
  readonly id: number;
  /** Version of the prospect's row. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly statusId: number | null;
  readonly assignedToUserId: number | null;
  readonly tagIds: readonly number[];
  /** Folded: trimmed, in lower case. */
  readonly city: string | null;
  readonly lat: number | null;
  readonly lng: number | null;
  /** All texts that a search looks into but the notes, without case, one per line. */
  readonly text: string;
  /** The digits of both phones, one phone per line. */
  readonly phoneDigits: string;
}

/** The prospect is deleted: hides every lower version of its row. */
export interface Tombstone {
  readonly id: number;
  readonly version: number;
  readonly deleted: true;
}

export type IndexEntry = IndexRow | Tombstone;

export const isTombstone = (entry: IndexEntry): entry is Tombstone => "deleted" in entry;

/** A note's text as the search sees it, without case. */
export interface NoteText {
  readonly prospectId: number;
  readonly noteId: number;
  readonly version: number;
  readonly text: string;
}

/** What became of a note: `null` when it is deleted. Versions decide here too. */
export type NoteEntry = Omit<NoteText, "text"> & { readonly text: string | null };

/** A note and where its row stands. */
export interface NoteRef {
  readonly prospectId: number;
  readonly noteId: number;
}

export interface SomeRecords {
  readonly prospects: readonly IndexEntry[];
  /** Those of deleted prospects included; a deleted note is not there any more. */
  readonly notes: readonly NoteText[];
}

/** All reads are strongly consistent. */
export interface Records {
  /** Every prospect whose row stands when the reading begins, deleted ones included, each with all its notes in one piece. */
  readAll(companyId: number): AsyncIterable<SomeRecords>;
  /** These, as far as they have rows. */
  readSome(companyId: number, prospects: readonly number[], notes: readonly NoteRef[]): Promise<SomeRecords>;
}
