/** Reads and writes the notes of a prospect. A user who sees a prospect may read and write its notes. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { failedAt, notFound } from "#shared/errors.ts";
import type { NewNote, NotePatch } from "#shared/prospects/input.ts";
import { presentNote } from "#shared/prospects/present.ts";
import {
  type Arrival,
  acceptsFact,
  changeOfNotes,
  changeOfNotesOf,
  glimpse,
  isPublished,
  isVisible,
  readVisibleProspect,
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
import { StoredNote, type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Yields the newest first. The response is streamed, because 5 000 notes exceed the size limit of a buffered Lambda response. */
export async function* listNotes(context: ReadContext, caller: Caller, prospectId: number): AsyncGenerator<Note> {
  const [dictionary] = await Promise.all([
    currentDictionary(context, caller.companyId),
    readVisibleProspect(context, caller, prospectId),
  ]);
  for await (const item of context.table.query({
    ...attachedKeys.notes(caller.companyId, prospectId),
    newestFirst: true,
  })) {
    yield presentNote(StoredNote.parse(item), dictionary);
  }
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

/**
 * The first try needs no strongly consistent read. If it fails, the error contains the prospect's current row, from which `secondTry` makes
 * another plan.
 */
export async function createNote(
  context: ApiContext,
  caller: Caller,
  prospectId: number,
  { body }: NewNote,
  arrival: Arrival = {},
): Promise<Plan<Note>> {
  const { companyId } = caller;
  const own = visibleAssignee(caller);
  const [note, dictionary, prospect] = await Promise.all([
    newNote(context, caller, prospectId, body, arrival),
    currentDictionary(context, companyId),
    own === undefined ? glimpse(context, companyId, prospectId) : undefined,
  ]);
  const plan = (counted: Write, assignee?: number | null): Plan<Note> => ({
    writes: [counted, ...insertNote(note, assignee)],
    answer: presentNote(note, dictionary),
    written: note,
  });
  const counted = changeOfNotes(caller, prospectId, Date.parse(note.updatedAt), prospect);
  return {
    ...plan(counted, own ?? prospect?.assignedToUserId),
    refused: (error) => {
      const failure = failedAt(error, 0);
      return failure === undefined
        ? undefined
        : secondTry(context, caller, failure.item, note).then((again) => plan(...again));
    },
  };
}

/**
 * Returns the write that replaces the failed `changeOfNotes`, and the assignee that it checks. `item` is the prospect's row. Throws
 * `not_found` if the caller may not see the prospect, now or when the note was written, or if its import is not completed. A caller who
 * sees all prospects needs no check of the assignee, so a reassignment cannot make the second try fail.
 */
async function secondTry(
  { table }: ApiContext,
  caller: Caller,
  item: Item | undefined,
  { updatedAt, occurredAt }: StoredNote,
): Promise<[counted: Write, assignee: number | null | undefined]> {
  const prospect = item === undefined ? undefined : storedProspect(item);
  if (prospect === undefined || !acceptsFact(caller, prospect, occurredAt)) throw notFound("prospect");
  const { id, companyId, importId, assignedToUserId } = prospect;
  if (!(await isPublished(table, companyId, importId))) throw notFound("prospect");
  const nowMs = Date.parse(updatedAt);
  return isVisible(caller, prospect)
    ? [changeOfNotes(caller, id, nowMs, { importId }), visibleAssignee(caller)]
    : [changeOfNotesOf(prospect, nowMs), assignedToUserId];
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
  const counted = changeOfNotes(caller, current.prospectId, Date.parse(next.updatedAt), prospect);
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

interface FoundNote {
  readonly note: StoredNote;
  readonly prospect: StoredProspect;
}

async function findNote(context: ApiContext, caller: Caller, id: number): Promise<FoundNote> {
  const { companyId } = caller;
  const locators = await findNoteLocators(context.table, companyId, [id]);
  const { prospectId, createdAt } = locators.get(id) ?? NOWHERE;
  const found = await findAttached(
    context,
    caller,
    prospectId,
    attachedKeys.note(companyId, prospectId, createdAt, id),
  );
  if (found === undefined) throw notFound("note");
  return { note: StoredNote.parse(found.item), prospect: found.prospect };
}
