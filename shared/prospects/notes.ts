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

/** The newest first. Streamed, because 5 000 notes exceed the size limit of a buffered Lambda response. */
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
  const own = visibleAssignee(caller);
  const [note, dictionary, prospect] = await Promise.all([
    newNote(context, caller, prospectId, body, arrival),
    currentDictionary(context, companyId),
    own === undefined ? glimpse(context, companyId, prospectId) : undefined,
  ]);
  const made = presentNote(note, dictionary);
  const nowMs = Date.parse(note.updatedAt);
  const commit = (first: Write, assignee?: number | null) =>
    context.commit([first, ...insertNote(note, assignee)], made, note);
  const first = changeOfNotes(caller, prospectId, nowMs, prospect);
  await commit(first, own ?? prospect?.assignedToUserId).catch(async (error: unknown) => {
    const again = await secondTry(context, caller, error, nowMs, arrival);
    const failed = again === undefined ? error : await failureOf(commit(again.first, again.assignee));
    if (failed !== undefined)
      throw isInvisible(failed) ? notFound("prospect") : isOneTooMany(failed) ? tooManyNotes() : failed;
  });
  return made;
}

/** Undefined if the transaction does not check the assignee. */
interface SecondTry {
  readonly first: Write;
  readonly assignee: number | null | undefined;
}

/**
 * Returns the first write of the second try of `createNote`, with the assignee that it checks, or undefined if a second try cannot succeed.
 * The error of the first try contains the current row of the prospect. It shows whether the caller may see it, now or when the note was
 * written, and whether an import must be completed. If the caller sees all prospects, the second try does not check the assignee, so that a
 * reassignment cannot make it fail.
 */
async function secondTry(
  { table }: ApiContext,
  caller: Caller,
  error: unknown,
  nowMs: number,
  { occurredAt }: Arrival,
): Promise<SecondTry | undefined> {
  const item = failedAt(error, 0)?.item;
  if (item === undefined) return undefined;
  const prospect = storedProspect(item);
  const { id, companyId, importId } = prospect;
  if (!acceptsFact(caller, prospect, occurredAt)) return undefined;
  if (!(await isPublished(table, companyId, importId))) return undefined;
  return isVisible(caller, prospect)
    ? {
        first: changeOfNotes(caller, id, nowMs, importId === undefined ? {} : { importId }),
        assignee: visibleAssignee(caller),
      }
    : { first: changeOfNotesOf(prospect, nowMs), assignee: prospect.assignedToUserId };
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
    const { note: current, prospect } = await findNote(context, caller, id);
    const { body = current.body } = patch;
    if (body === current.body) return presentNote(current, dictionary);
    const next = { ...current, body, updatedAt: iso(context.clock.now()), version: current.version + 1 };
    await context.table.transact([
      changeOfNotes(caller, current.prospectId, Date.parse(next.updatedAt), prospect),
      ...replaceNote(current, next, prospect.assignedToUserId),
    ]);
    return presentNote(next, dictionary);
  });
}

/** A note can be removed, because no other record refers to it. */
export function deleteNote(context: ApiContext, caller: Caller, id: number): Promise<void> {
  return optimistic(async () => {
    const { note: current, prospect } = await findNote(context, caller, id);
    const nowMs = context.clock.now();
    await context.table.transact([changeOfNotesOf(prospect, nowMs), ...removeNote(current, prospect, nowMs)]);
  });
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

/**
 * In each transaction of this file, the first write checks that the caller sees the prospect, and the second write of an insert counts the
 * notes.
 */
const isInvisible = (error: unknown): boolean => failsAt(error, 0);
const isOneTooMany = (error: unknown): boolean => failsAt(error, 1);
export const failsAt = (error: unknown, at: number): boolean => failedAt(error, at) !== undefined;

export const tooManyNotes = (): ApiError =>
  new ApiError("conflict", `A prospect may have at most ${limits.notesPerProspect} notes.`);
