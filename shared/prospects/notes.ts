/** Reads and writes the notes of a prospect. A user who sees a prospect may read and write its notes. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { ApiError, failedAt, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { type Arrival, occurred } from "#shared/prospects/arrival.ts";
import type { NewNote, NotePatch } from "#shared/prospects/input.ts";
import { presentNote } from "#shared/prospects/present.ts";
import {
  acceptsFact,
  changeOfNotes,
  changeOfPastNotes,
  isPublished,
  isVisible,
  readVisibleProspect,
} from "#shared/prospects/read.ts";
import { findAttached, findNoteLocators, insertNote, removeNote, replaceNote } from "#shared/prospects/rows.ts";
import type { Note } from "#shared/prospects/schema.ts";
import { StoredNote, storedProspect } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Yields all notes, the newest first. The result is streamed, because 5 000 notes exceed the size limit of a buffered Lambda response. */
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
  return { type: "note", id, companyId, prospectId, body, ...dated, ...occurred(arrival), version: 1 };
}

export async function createNote(
  context: ApiContext,
  caller: Caller,
  prospectId: number,
  { body }: NewNote,
  arrival: Arrival = {},
): Promise<Note> {
  const { companyId } = caller;
  const [note, dictionary] = await Promise.all([
    newNote(context, caller, prospectId, body, arrival),
    currentDictionary(context, companyId),
  ]);
  const made = presentNote(note, dictionary);
  const nowMs = Date.parse(note.updatedAt);
  const commit = (first: Write, assignee?: number) =>
    context.commit([first, ...insertNote(note, assignee)], made, note);
  const first = changeOfNotes(caller, prospectId, nowMs);
  await commit(first, visibleAssignee(caller)).catch(async (error: unknown) => {
    const again = await secondTry(context, caller, error, nowMs, arrival);
    const failed = again === undefined ? error : await failureOf(commit(again));
    if (failed !== undefined)
      throw isInvisible(failed) ? notFound("prospect") : isOneTooMany(failed) ? tooManyNotes() : failed;
  });
  return made;
}

/**
 * Returns the first write of the transaction with which `createNote` tries again, or undefined if another try cannot succeed. The first try
 * checks the caller's rights without reading the prospect. If this check fails, the error contains the prospect's row. The row shows
 * whether a completed import has created the prospect, and whether the prospect was assigned to the caller when the note was written. In
 * these two cases, the note is accepted.
 */
async function secondTry(
  { table }: ApiContext,
  caller: Caller,
  error: unknown,
  nowMs: number,
  { occurredAt }: Arrival,
): Promise<Write | undefined> {
  const item = failedAt(error, 0)?.item;
  if (item === undefined) return undefined;
  const prospect = storedProspect(item);
  const { id, companyId, importId } = prospect;
  if (!acceptsFact(caller, prospect, occurredAt)) return undefined;
  if (!(await isPublished(table, companyId, importId))) return undefined;
  if (!isVisible(caller, prospect)) return changeOfPastNotes(prospect, nowMs);
  return importId === undefined ? undefined : changeOfNotes(caller, id, nowMs, importId);
}

const failureOf = (work: Promise<void>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

export async function getNote(context: ApiContext, caller: Caller, id: number): Promise<Note> {
  const [{ note }, dictionary] = await Promise.all([
    findNote(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  return presentNote(note, dictionary);
}

export async function updateNote(context: ApiContext, caller: Caller, id: number, patch: NotePatch): Promise<Note> {
  const dictionary = await currentDictionary(context, caller.companyId);
  return optimistic(async () => {
    const { note: current, importId } = await findNote(context, caller, id);
    const { body = current.body } = patch;
    if (body === current.body) return presentNote(current, dictionary);
    const next = { ...current, body, updatedAt: iso(context.clock.now()), version: current.version + 1 };
    await context.table.transact([
      changeOfNotes(caller, current.prospectId, Date.parse(next.updatedAt), importId),
      ...replaceNote(current, next, visibleAssignee(caller)),
    ]);
    return presentNote(next, dictionary);
  });
}

/**
 * Deletes the row of a note. Deleted records of other kinds are only hidden, but a note can be removed, because no other record refers to
 * it.
 */
export function deleteNote(context: ApiContext, caller: Caller, id: number): Promise<void> {
  return optimistic(async () => {
    const { note: current, importId } = await findNote(context, caller, id);
    await context.table.transact([
      changeOfNotes(caller, current.prospectId, context.clock.now(), importId),
      ...removeNote(current, visibleAssignee(caller)),
    ]);
  });
}

interface FoundNote {
  readonly note: StoredNote;
  /** Id of the import that created the prospect. Undefined if the prospect was not imported. */
  readonly importId: string | undefined;
}

async function findNote(context: ApiContext, caller: Caller, id: number): Promise<FoundNote> {
  const { companyId } = caller;
  const locator = (await findNoteLocators(context.table, companyId, [id])).get(id);
  if (locator === undefined) throw notFound("note");
  const { prospectId, createdAt } = locator;
  const found = await findAttached(
    context,
    caller,
    prospectId,
    attachedKeys.note(companyId, prospectId, createdAt, id),
  );
  if (found === undefined) throw notFound("note");
  return { note: StoredNote.parse(found.item), importId: found.prospect.importId };
}

/**
 * In each transaction of this file, the first write (index 0) checks that the caller sees the prospect. In an insert, the second write
 * (index 1) counts the notes.
 */
const isInvisible = (error: unknown): boolean => failsAt(error, 0);
const isOneTooMany = (error: unknown): boolean => failsAt(error, 1);
export const failsAt = (error: unknown, at: number): boolean => failedAt(error, at) !== undefined;

export const tooManyNotes = (): ApiError =>
  new ApiError("conflict", `A prospect may have at most ${limits.notesPerProspect} notes.`);
