/** Keys of what hangs on prospects (notes, past statuses, appointments) and of what finds it: places by id, the calendar, agendas. */
import { blockOf, type Key, keys, padded } from "#shared/db/keys.ts";

const partitionOf = (companyId: number, prospectId: number): string =>
  keys.prospectBlock(companyId, blockOf(prospectId)).pk;
const placePartition = (companyId: number, id: number): string => `C#${companyId}#I#${id}`;
const calendarPartition = (companyId: number, month: string): string => `C#${companyId}#K#${month}`;
const agendaPartition = (companyId: number, assignee: number | null): string => `C#${companyId}#KA#${assignee ?? 0}`;

/** They share the partition of their prospect, under prefixes of their own: a span of prospects reads none of them. */
export const besideKeys = {
  /** The prospects of one id block with all their notes, and nothing else. */
  prospectsAndNotes: (companyId: number, blockNumber: number) => ({
    pk: keys.prospectBlock(companyId, blockNumber).pk,
    from: "N#",
    upTo: "P#~",
  }),
  /** The prospects of one id block with the counts of their notes, without the notes. */
  prospectsAndCounts: (companyId: number, blockNumber: number) => ({
    pk: keys.prospectBlock(companyId, blockNumber).pk,
    from: "NC#",
    upTo: "P#~",
  }),
  /** A note. Those of one prospect are in the order of their making. */
  note: (companyId: number, prospectId: number, createdAt: string, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `N#${padded(prospectId)}#${createdAt}#${padded(id)}`,
  }),
  /** The notes of the prospects of one id block from one id to another, both included. */
  notes: (companyId: number, first: number, last = first) => ({
    pk: partitionOf(companyId, first),
    from: `N#${padded(first)}`,
    // `$` is the character after `#`: all notes of the last prospect are within.
    upTo: `N#${padded(last)}$`,
  }),
  /** How many notes does the prospect have, apart from one that came with its import? */
  noteCount: (companyId: number, prospectId: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `NC#${padded(prospectId)}`,
  }),
  /** All appointments and all past status changes of the prospect. */
  details: (companyId: number, prospectId: number): { pk: string; begins: string } => ({
    pk: partitionOf(companyId, prospectId),
    begins: `D#${padded(prospectId)}#`,
  }),
  appointments: (companyId: number, prospectId: number): { pk: string; begins: string } => ({
    pk: partitionOf(companyId, prospectId),
    begins: `D#${padded(prospectId)}#A#`,
  }),
  appointment: (companyId: number, prospectId: number, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `D#${padded(prospectId)}#A#${padded(id)}`,
  }),
  /** A status change, by the version of the prospect that it made. */
  history: (companyId: number, prospectId: number, version: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `D#${padded(prospectId)}#H#${padded(version)}`,
  }),
  /** A deleted appointment: no read of the prospect comes by it. */
  deletedAppointment: (companyId: number, prospectId: number, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `X#${padded(prospectId)}#A#${padded(id)}`,
  }),
  /** Which prospect does the note or appointment with this id hang on? One row each, so no partition is hot. */
  notePlace: (companyId: number, id: number): Key => ({ pk: placePartition(companyId, id), sk: "NOTE" }),
  appointmentPlace: (companyId: number, id: number): Key => ({
    pk: placePartition(companyId, id),
    sk: "APPOINTMENT",
  }),
  /** Which appointments of a company start in this month (`YYYY-MM`, UTC), from one instant to another inclusive? */
  calendar: (companyId: number, month: string, from: string, to: string) => ({
    pk: calendarPartition(companyId, month),
    from,
    // `$` is the character after `#`: what starts at the last instant is within.
    upTo: `${to}$`,
  }),
  calendarEntry: (companyId: number, startAt: string, id: number): Key => ({
    pk: calendarPartition(companyId, startAt.slice(0, 7)),
    sk: `${startAt}#${padded(id)}`,
  }),
  /**
   * When are the appointments of a prospect? One row, with those of the other prospects of its assignee, and none of them starts
   * after `until`.
   */
  agenda: (companyId: number, assignee: number | null, until: string, prospectId: number): Key => ({
    pk: agendaPartition(companyId, assignee),
    sk: `${until}#${padded(prospectId)}`,
  }),
  /** The agendas of a user's prospects, as far as they may have something at this instant or later. */
  agendas: (companyId: number, userId: number, from: string) => ({
    pk: agendaPartition(companyId, userId),
    from,
    upTo: "~",
  }),

  /** Which prospects do the notes of an import with the ids of one block hang on? */
  notePlaces: (companyId: number, blockNumber: number): Key => ({
    pk: `C#${companyId}#I#B${blockNumber}`,
    sk: "NOTES",
  }),
} as const;
