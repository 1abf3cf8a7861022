/** Reads and writes the notes of a prospect. A user who sees a prospect may read and write its notes. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import { ApiError, ConditionFailed, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import type { NewNote, NotePatch } from "#shared/prospects/input.ts";
import { presentNote } from "#shared/prospects/present.ts";
import { changeOfNotes, isPublished, readVisibleProspect } from "#shared/prospects/read.ts";
import { findAttached, findNoteLocators, insertNote, removeNote, replaceNote } from "#shared/prospects/rows.ts";
import type { Note } from "#shared/prospects/schema.ts";
import { StoredNote } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Yields all notes, the newest first. The result is streamed, because 5 000 notes exceed the size limit of a buffered answer. */
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
): Promise<StoredNote> {
  const id = await ids.next();
  const now = iso(clock.now());
  const dated = { createdAt: now, updatedAt: now, createdBy: userId };
  return { type: "note", id, companyId, prospectId, body, ...dated, version: 1 };
}

export async function createNote(
  context: ApiContext,
  caller: Caller,
  prospectId: number,
  { body }: NewNote,
): Promise<Note> {
  const { companyId } = caller;
  const [note, dictionary] = await Promise.all([
    newNote(context, caller, prospectId, body),
    currentDictionary(context, companyId),
  ]);
  const made = presentNote(note, dictionary);
  const commit = (importId?: string) =>
    context.commit(
      [changeOfNotes(caller, prospectId, Date.parse(note.updatedAt), importId), ...insertNote(note)],
      made,
    );
  await commit().catch(async (error: unknown) => {
    const importId = importOf(error);
    const isThere = importId !== undefined && (await isPublished(context.table, companyId, importId));
    const failed = isThere
      ? await commit(importId).then(
          () => undefined,
          (again: unknown) => again,
        )
      : error;
    if (failed !== undefined)
      throw isInvisible(failed) ? notFound("prospect") : isOneTooMany(failed) ? tooManyNotes() : failed;
  });
  return made;
}

const Imported = z.object({ importId: z.string() });

/**
 * Returns the id of the import that created the prospect. If the check of the caller's rights fails, the error contains the prospect's
 * row with this id.
 */
function importOf(error: unknown): string | undefined {
  if (!(error instanceof ConditionFailed)) return undefined;
  return Imported.safeParse(error.failed.find(({ index }) => index === 0)?.item).data?.importId;
}

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
      ...replaceNote(current, next),
    ]);
    return presentNote(next, dictionary);
  });
}

/** Deletes the row of a note. Other records are only hidden when they are deleted, but no other record refers to a note. */
export function deleteNote(context: ApiContext, caller: Caller, id: number): Promise<void> {
  return optimistic(async () => {
    const { note: current, importId } = await findNote(context, caller, id);
    await context.table.transact([
      changeOfNotes(caller, current.prospectId, context.clock.now(), importId),
      ...removeNote(current),
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
 * In each transaction of this file, the first write checks that the caller sees the prospect. In an insert, the second write counts the
 * notes.
 */
const isInvisible = (error: unknown): boolean => failsAt(error, 0);
const isOneTooMany = (error: unknown): boolean => failsAt(error, 1);
export const failsAt = (error: unknown, at: number): boolean =>
  error instanceof ConditionFailed && error.failed.some(({ index }) => index === at);

export const tooManyNotes = (): ApiError =>
  new ApiError("conflict", `A prospect may have at most ${limits.notesPerProspect} notes.`);
