/**
 * Keys of the rows that belong to prospects. Notes, status changes and appointments are in the partition of their prospect. Their sort keys
 * do not begin with `P#`, so reads of prospects skip them. A locator finds such a row by its id.
 */
import { blockOf, type Key, padded, prospectBlock } from "#shared/db/keys.ts";

const partitionOf = (companyId: number, prospectId: number): string => prospectBlock(companyId, blockOf(prospectId)).pk;
const locatorPartition = (companyId: number, id: number): string => `C#${companyId}#I#${id}`;
const calendarPartition = (companyId: number, month: string): string => `C#${companyId}#K#${month}`;
const agendaPartition = (companyId: number, assignee: number | null): string => `C#${companyId}#KA#${assignee ?? 0}`;

/** The prospects of one block of 128 ids, with their notes and the counts of the notes. */
export const prospectsAndNotes = (companyId: number, blockNumber: number) => ({
  pk: prospectBlock(companyId, blockNumber).pk,
  from: "N#",
  upTo: "P#~",
});
/** The prospects of one block of 128 ids, with the counts of their notes but without the notes. */
export const prospectsAndCounts = (companyId: number, blockNumber: number) => ({
  pk: prospectBlock(companyId, blockNumber).pk,
  from: "NC#",
  upTo: "P#~",
});
/** A note. The notes of a prospect are sorted by creation time. */
export const note = (companyId: number, prospectId: number, createdAt: string, id: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `N#${padded(prospectId)}#${createdAt}#${padded(id)}`,
});
/** The notes of the prospects from `first` to `last`, both included. They must be in the same block. */
export const notes = (companyId: number, first: number, last = first) => ({
  pk: partitionOf(companyId, first),
  from: `N#${padded(first)}`,
  // `$` sorts directly after `#`, so the range includes all notes of the prospect `last`.
  upTo: `N#${padded(last)}$`,
});
/** The row with the number of the prospect's notes, without those that an import has created together with the prospect. */
export const noteCount = (companyId: number, prospectId: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `NC#${padded(prospectId)}`,
});
export const details = (companyId: number, prospectId: number): { pk: string; begins: string } => ({
  pk: partitionOf(companyId, prospectId),
  begins: `D#${padded(prospectId)}#`,
});
export const appointments = (companyId: number, prospectId: number): { pk: string; begins: string } => ({
  pk: partitionOf(companyId, prospectId),
  begins: `D#${padded(prospectId)}#A#`,
});
export const appointment = (companyId: number, prospectId: number, id: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `D#${padded(prospectId)}#A#${padded(id)}`,
});
/** A status change of a prospect. `version` is the version of the prospect after the change. */
export const history = (companyId: number, prospectId: number, version: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `D#${padded(prospectId)}#H#${padded(version)}`,
});
/** No read of the prospect includes the row of a deleted appointment. Its stream record becomes the event `appointment.cancelled`. */
export const deletedAppointment = (companyId: number, prospectId: number, id: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `X#${padded(prospectId)}#A#${padded(id)}`,
});
/** Each locator has its own partition, so no partition gets too many writes. */
export const noteLocator = (companyId: number, id: number): Key => ({
  pk: locatorPartition(companyId, id),
  sk: "NOTE",
});
export const appointmentLocator = (companyId: number, id: number): Key => ({
  pk: locatorPartition(companyId, id),
  sk: "APPOINTMENT",
});
/** The appointments of one month (`YYYY-MM`, UTC) that start from `from` to `to`, both included. */
export const calendar = (companyId: number, month: string, from: string, to: string) => ({
  pk: calendarPartition(companyId, month),
  from,
  // `$` sorts directly after `#`, so the range includes all appointments that start at `to`.
  upTo: `${to}$`,
});
export const calendarEntry = (companyId: number, startAt: string, id: number): Key => ({
  pk: calendarPartition(companyId, startAt.slice(0, 7)),
  sk: `${startAt}#${padded(id)}`,
});
/** The agendas of all prospects of an assignee share a partition. No appointment of the prospect starts after `until`. */
export const agenda = (companyId: number, assignee: number | null, until: string, prospectId: number): Key => ({
  pk: agendaPartition(companyId, assignee),
  sk: `${until}#${padded(prospectId)}`,
});
/** The agendas that may have appointments at `from` or later. For unassigned prospects, `userId` is null. */
export const agendas = (companyId: number, userId: number | null, from: string) => ({
  pk: agendaPartition(companyId, userId),
  from,
  upTo: "~",
});

/** The locators of all imported notes of one block of 128 ids, packed into one row. */
export const noteLocators = (companyId: number, blockNumber: number): Key => ({
  pk: `C#${companyId}#I#B${blockNumber}`,
  sk: "NOTES",
});
