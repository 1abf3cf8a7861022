/** Writes of a prospect's row and of a note's, each with its entry in the company index: in one transaction or not at all. */
import { noteDelta, prospectDelta } from "#shared/company-index/delta.ts";
import { absent, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Write } from "#shared/db/table.ts";
import type { StoredNote } from "#shared/notes/schema.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import { prospectItem, type StoredProspect } from "#shared/prospects/stored.ts";
import type { UpcomingFields } from "#shared/prospects/upcoming.ts";

export const insertProspect = (prospect: StoredProspect): Write[] => [
  { put: { ...keys.prospect(prospect.companyId, prospect.id), ...prospectItem(prospect) }, when: absent },
  prospectDelta(prospect.companyId, indexEntry(prospect)),
];

/** `next` has the next version. Fails its condition when somebody wrote the row since `current` was read. */
export const replaceProspect = (current: StoredProspect, next: StoredProspect): Write[] => [
  {
    put: { ...keys.prospect(next.companyId, next.id), ...prospectItem(next) },
    when: equals("version", current.version),
  },
  prospectDelta(next.companyId, indexEntry(next)),
];

/** Goes with every write of an appointment. The row's condition keeps two such writes from overlooking each other. */
export const keepUpcoming = (current: StoredProspect, fields: UpcomingFields): Write[] =>
  replaceProspect(current, { ...current, ...fields, version: current.version + 1 });

export const insertNote = (note: StoredNote): Write[] => [
  { put: { ...keyOfNote(note), ...note }, when: absent },
  noteDelta(note.companyId, indexNote(note)),
];

export const replaceNote = (current: StoredNote, next: StoredNote): Write[] => [
  { put: { ...keyOfNote(next), ...next }, when: equals("version", current.version) },
  noteDelta(next.companyId, indexNote(next)),
];

export const removeNote = (note: StoredNote): Write[] => [
  { remove: keyOfNote(note), when: equals("version", note.version) },
  noteDelta(note.companyId, { ...indexNote(note), version: note.version + 1, text: null }),
];

const keyOfNote = ({ companyId, prospectId, id }: StoredNote) => keys.note(companyId, prospectId, id);
