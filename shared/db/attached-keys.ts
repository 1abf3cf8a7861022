/**
 * Keys of the rows that belong to prospects: notes, past status changes, appointments, locators, and the rows of calendars and agendas. A
 * locator is a row that finds a note or appointment by id. A calendar contains the appointments of a company, and an agenda the times of a
 * prospect's appointments. Notes, status changes and appointments are in the partition of their prospect. Their sort keys do not begin with
 * `P#`, so reads of the prospects themselves skip them.
 */
import { blockOf, type Key, padded, prospectBlock } from "#shared/db/keys.ts";

const partitionOf = (companyId: number, prospectId: number): string => prospectBlock(companyId, blockOf(prospectId)).pk;
const locatorPartition = (companyId: number, id: number): string => `C#${companyId}#I#${id}`;
const calendarPartition = (companyId: number, month: string): string => `C#${companyId}#K#${month}`;
const agendaPartition = (companyId: number, assignee: number | null): string => `C#${companyId}#KA#${assignee ?? 0}`;

/** The notes and the prospects of one block of 128 ids. The range also contains the rows that count the notes (`noteCount`). */
export const prospectsAndNotes = (companyId: number, blockNumber: number) => ({
  pk: prospectBlock(companyId, blockNumber).pk,
  from: "N#",
  upTo: "P#~",
});
/** The prospects of one block of 128 ids, and the rows that count the notes of each prospect. */
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
/** The range of the notes of the prospects from `first` to `last`, both included. Both prospects must be in the same block of 128 ids. */
export const notes = (companyId: number, first: number, last = first) => ({
  pk: partitionOf(companyId, first),
  from: `N#${padded(first)}`,
  // `$` sorts directly after `#`, so the range includes all notes of the prospect `last`.
  upTo: `N#${padded(last)}$`,
});
/** The row with the number of the prospect's notes. Notes that an import has created together with the prospect are not counted. */
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
/** A past status change. `version` is the version of the prospect after the change. */
export const history = (companyId: number, prospectId: number, version: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `D#${padded(prospectId)}#H#${padded(version)}`,
});
/**
 * A deleted appointment. The deletion moves the row to this key, which no read of the prospect includes. The stream record of the new row
 * becomes the event `appointment.cancelled`.
 */
export const deletedAppointment = (companyId: number, prospectId: number, id: number): Key => ({
  pk: partitionOf(companyId, prospectId),
  sk: `X#${padded(prospectId)}#A#${padded(id)}`,
});
/**
 * The locator of a note: the row that finds the note by its id. It contains the id of the note's prospect. Each locator has a separate
 * partition, so that no partition gets too many writes.
 */
export const noteLocator = (companyId: number, id: number): Key => ({
  pk: locatorPartition(companyId, id),
  sk: "NOTE",
});
export const appointmentLocator = (companyId: number, id: number): Key => ({
  pk: locatorPartition(companyId, id),
  sk: "APPOINTMENT",
});
/**
 * A range of the company's calendar, which has one row for each appointment, sorted by start (`calendarEntry`). The range contains the
 * appointments of one month (`YYYY-MM`, UTC) that start at `from` or later, and at `to` or earlier.
 */
export const calendar = (companyId: number, month: string, from: string, to: string) => ({
  pk: calendarPartition(companyId, month),
  from,
  // `$` sorts directly after `#`, so the range includes appointments that start exactly at `to`.
  upTo: `${to}$`,
});
export const calendarEntry = (companyId: number, startAt: string, id: number): Key => ({
  pk: calendarPartition(companyId, startAt.slice(0, 7)),
  sk: `${startAt}#${padded(id)}`,
});
/**
 * The agenda of a prospect (the times of its appointments). The agendas of all prospects that are assigned to a user are in one partition,
 * so one Query reads them. `until` is the start of the agenda's last appointment or a later time.
 */
export const agenda = (companyId: number, assignee: number | null, until: string, prospectId: number): Key => ({
  pk: agendaPartition(companyId, assignee),
  sk: `${until}#${padded(prospectId)}`,
});
/** The agendas of a user's prospects that may have appointments at the time `from` or later. The user `null` means unassigned prospects. */
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
