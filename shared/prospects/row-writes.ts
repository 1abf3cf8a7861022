/** Writes of a prospect's row and of a note's, each with its entry in the company index: in one transaction or not at all. */
import { noteDelta, prospectDelta } from "#shared/company-index/delta.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import { absent, any, below, equals, missing } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { limits } from "#shared/limits.ts";
import { type AgendaEntry, agendaUntil, agendaWrites } from "#shared/prospects/agenda.ts";
import { newNotePlace } from "#shared/prospects/attached.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import type { StoredNote } from "#shared/prospects/note-schema.ts";
import { prospectItem, type StoredProspect } from "#shared/prospects/stored.ts";
import type { UpcomingFields } from "#shared/prospects/upcoming.ts";

export const insertProspect = (prospect: StoredProspect): Write[] => [
  { put: { ...keys.prospect(prospect.companyId, prospect.id), ...prospectItem(prospect) }, when: absent },
  ...prospectDelta(prospect.companyId, indexEntry(prospect)),
];

/** `next` has the next version. Fails its condition when somebody wrote the row since `current` was read. */
export const replaceProspect = (current: StoredProspect, next: StoredProspect): Write[] => [
  {
    put: { ...keys.prospect(next.companyId, next.id), ...prospectItem(next) },
    when: equals("version", current.version),
  },
  ...prospectDelta(next.companyId, indexEntry(next)),
];

/** Goes with every write of an appointment. The row's condition keeps two such writes from overlooking each other. */
export function keepAppointments(
  current: StoredProspect,
  upcoming: UpcomingFields,
  agenda: readonly AgendaEntry[],
): Write[] {
  const { agendaUntil: before, ...others } = current;
  const until = agendaUntil(agenda, before);
  const changed = { ...others, ...upcoming, version: current.version + 1 };
  const next = until === undefined ? changed : { ...changed, agendaUntil: until };
  return [...replaceProspect(current, next), ...agendaWrites(current, next, agenda)];
}

/** The first one fails its condition where the prospect has as many notes as it may have. */
export const insertNote = (note: StoredNote): Write[] => [
  {
    update: besideKeys.noteCount(note.companyId, note.prospectId),
    change: { set: { type: "noteCount", prospectId: note.prospectId }, add: { notes: 1 } },
    when: any(missing("notes"), below("notes", limits.notesPerProspect)),
  },
  { put: { ...keyOfNote(note), ...note }, when: absent },
  ...noteDelta(note.companyId, indexNote(note)),
  newNotePlace(note),
];

export const replaceNote = (current: StoredNote, next: StoredNote): Write[] => [
  { put: { ...keyOfNote(next), ...next }, when: equals("version", current.version) },
  ...noteDelta(next.companyId, indexNote(next)),
];

/** A note that came with an import was not counted. */
export const removeNote = (note: StoredNote): Write[] => [
  { remove: keyOfNote(note), when: equals("version", note.version) },
  ...noteDelta(note.companyId, { ...indexNote(note), version: note.version + 1, text: null }),
  { remove: besideKeys.notePlace(note.companyId, note.id) },
  ...(note.importId === undefined
    ? [{ update: besideKeys.noteCount(note.companyId, note.prospectId), change: { add: { notes: -1 } } }]
    : []),
];

const keyOfNote = ({ companyId, prospectId, createdAt, id }: StoredNote) =>
  besideKeys.note(companyId, prospectId, createdAt, id);
