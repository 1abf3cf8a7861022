/** The records that an index is made of, as whoever owns them reads them for a rebuild and for checks. */
import type { IndexEntry, NoteText } from "#shared/company-index/row.ts";

/** A note and where its row stands. */
export interface NotePlace {
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
  readSome(companyId: number, prospects: readonly number[], notes: readonly NotePlace[]): Promise<SomeRecords>;
}
