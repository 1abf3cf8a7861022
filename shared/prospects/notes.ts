/** Reads and writes the notes of a prospect. A user who sees a prospect may read and write its notes. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { existing } from "#shared/errors.ts";
import type { NewNote, NotePatch } from "#shared/prospects/input.ts";
import { presentNote } from "#shared/prospects/present.ts";
import {
  type Arrival,
  changeOfNotes,
  changeOfNotesOf,
  readVisibleProspect,
  visibleIn,
} from "#shared/prospects/read.ts";
import {
  findAttached,
  findNoteLocators,
  insertNote,
  NOWHERE,
  removeNote,
  replaceNote,
} from "#shared/prospects/rows.ts";
import type { Note } from "#shared/prospects/schema.ts";
import { StoredNote, type StoredProspect } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Yields the newest note first. The response is streamed, because 5 000 notes exceed the size limit of a buffered Lambda response. */
export async function* listNotes(context: ReadContext, caller: Caller, prospectId: number): AsyncGenerator<Note> {
  const [dictionary] = await Promise.all([
    currentDictionary(context, caller.companyId),
    readVisibleProspect(context, caller, prospectId),
  ]);
  const newestFirst = { ...attachedKeys.notes(caller.companyId, prospectId), newestFirst: true };
  for await (const item of context.table.query(newestFirst)) yield presentNote(StoredNote.parse(item), dictionary);
}

export async function newNote(
  { ids, clock }: ApiContext,
  { companyId, userId }: Caller,
  prospectId: number,
  body: string,
  arrival: Arrival = {},
): Promise<StoredNote> {
  const id = await ids.next();
  const now = iso(clock.now());
  const dated = { createdAt: now, updatedAt: now, createdBy: userId };
  return { type: "note", id, companyId, prospectId, body, ...dated, occurredAt: arrival.occurredAt, version: 1 };
}

export async function createNote(
  context: ApiContext,
  caller: Caller,
  prospectId: number,
  { body }: NewNote,
  arrival: Arrival = {},
): Promise<Plan<Note>> {
  const { companyId } = caller;
  const [note, dictionary, [item]] = await Promise.all([
    newNote(context, caller, prospectId, body, arrival),
    currentDictionary(context, companyId),
    context.table.batchGet([keys.prospect(companyId, prospectId)]),
  ]);
  const prospect = existing(await visibleIn(context.table, caller, item, arrival.occurredAt), "prospect");
  const counted = changeOfNotes(prospect, Date.parse(note.updatedAt));
  return {
    writes: [counted, ...insertNote(note, prospect.assignedToUserId)],
    answer: presentNote(note, dictionary),
    written: note,
  };
}

export async function getNote(context: ApiContext, caller: Caller, id: number): Promise<Note> {
  const [{ note }, dictionary] = await Promise.all([
    findNote(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  return presentNote(note, dictionary);
}

export async function updateNote(
  context: ApiContext,
  caller: Caller,
  id: number,
  { body }: NotePatch,
): Promise<Plan<Note>> {
  const [{ note: current, prospect }, dictionary] = await Promise.all([
    findNote(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  if (body === undefined || body === current.body) return unchanged(presentNote(current, dictionary));
  const next = { ...current, body, updatedAt: iso(context.clock.now()), version: current.version + 1 };
  const counted = changeOfNotes(prospect, Date.parse(next.updatedAt));
  return {
    writes: [counted, ...replaceNote(current, next, prospect.assignedToUserId)],
    answer: presentNote(next, dictionary),
  };
}

/** Removes the row of the note, because no other record refers to it. */
export async function deleteNote(context: ApiContext, caller: Caller, id: number): Promise<Plan<{ id: number }>> {
  const { note: current, prospect } = await findNote(context, caller, id);
  const nowMs = context.clock.now();
  return { writes: [changeOfNotesOf(prospect, nowMs), ...removeNote(current, prospect, nowMs)], answer: { id } };
}

async function findNote(
  context: ApiContext,
  caller: Caller,
  id: number,
): Promise<{ note: StoredNote; prospect: StoredProspect }> {
  const { companyId } = caller;
  const locators = await findNoteLocators(context.table, companyId, [id]);
  const { prospectId, createdAt } = locators.get(id) ?? NOWHERE;
  const key = attachedKeys.note(companyId, prospectId, createdAt, id);
  const { item, prospect } = existing(await findAttached(context, caller, prospectId, key), "note");
  return { note: StoredNote.parse(item), prospect };
}
