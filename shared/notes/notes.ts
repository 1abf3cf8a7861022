/** Reads and writes the notes of a prospect. Who sees the prospect reads and writes its notes. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Write } from "#shared/db/table.ts";
import { notFound } from "#shared/http/problem.ts";
import { isPublished } from "#shared/imports/published.ts";
import { type NewNote, type Note, type NotePatch, StoredNote } from "#shared/notes/schema.ts";
import { findAttached, findNotePlace, newPlaceWrite } from "#shared/prospects/attached.ts";
import { newestFirst, presentNote } from "#shared/prospects/present.ts";
import { readProspectRows } from "#shared/prospects/read.ts";
import { insertNote, removeNote, replaceNote } from "#shared/prospects/row-writes.ts";
import { requireVisible } from "#shared/prospects/visibility.ts";
import type { World } from "#shared/world.ts";

/** All notes of the prospect, newest first. */
export async function listNotes(world: World, caller: Caller, prospectId: number): Promise<Note[]> {
  const [{ notes }, dictionary] = await Promise.all([
    readProspectRows(world, caller, prospectId),
    loadDictionary(world.table, caller.companyId),
  ]);
  return notes.sort(newestFirst).map((note) => presentNote(note, dictionary));
}

export async function createNote(world: World, caller: Caller, prospectId: number, { body }: NewNote): Promise<Note> {
  const { companyId, userId } = caller;
  const [id, dictionary] = await Promise.all([world.ids.next(), loadDictionary(world.table, companyId)]);
  const now = iso(world.clock.now());
  const dated = { createdAt: now, updatedAt: now, createdBy: userId };
  const note: StoredNote = { type: "note", id, companyId, prospectId, body, ...dated, version: 1 };
  const made = presentNote(note, dictionary);
  const commit = (importId?: string) =>
    world.commit([requireVisible(caller, prospectId, importId), ...newNoteWrites(note)], made);
  await commit().catch(async (error: unknown) => {
    const importId = importOf(error);
    const isThere = importId !== undefined && (await isPublished(world.table, companyId, importId));
    const failed = isThere
      ? await commit(importId).then(
          () => undefined,
          (again: unknown) => again,
        )
      : error;
    if (failed !== undefined) throw isInvisible(failed) ? notFound("prospect") : failed;
  });
  return made;
}

const Imported = z.object({ importId: z.string() });

/** Which import the prospect came with, where the check of it failed. */
function importOf(error: unknown): string | undefined {
  if (!(error instanceof ConditionFailed)) return undefined;
  return Imported.safeParse(error.failed.find(({ index }) => index === 0)?.item).data?.importId;
}

/** The note and the place where its id alone finds it. */
export const newNoteWrites = (note: StoredNote): Write[] => [
  ...insertNote(note),
  newPlaceWrite(keys.notePlace(note.companyId, note.id), note.prospectId),
];

export async function getNote(world: World, caller: Caller, id: number): Promise<Note> {
  const [{ note }, dictionary] = await Promise.all([
    findNote(world, caller, id),
    loadDictionary(world.table, caller.companyId),
  ]);
  return presentNote(note, dictionary);
}

/** A patch that changes nothing writes nothing and bumps nothing. */
export async function updateNote(world: World, caller: Caller, id: number, patch: NotePatch): Promise<Note> {
  const dictionary = await loadDictionary(world.table, caller.companyId);
  return optimistic(async () => {
    const { note: current, importId } = await findNote(world, caller, id);
    const { body = current.body } = patch;
    if (body === current.body) return presentNote(current, dictionary);
    const next = { ...current, body, updatedAt: iso(world.clock.now()), version: current.version + 1 };
    await world.table.transact([requireVisible(caller, current.prospectId, importId), ...replaceNote(current, next)]);
    return presentNote(next, dictionary);
  });
}

/** Removes the note for good: nothing refers to it. */
export function deleteNote(world: World, caller: Caller, id: number): Promise<void> {
  return optimistic(async () => {
    const { note: current, importId } = await findNote(world, caller, id);
    await world.table.transact([
      requireVisible(caller, current.prospectId, importId),
      ...removeNote(current),
      { remove: keys.notePlace(caller.companyId, id) },
    ]);
  });
}

interface FoundNote {
  readonly note: StoredNote;
  /** Which import its prospect came with. */
  readonly importId: string | undefined;
}

async function findNote(world: World, caller: Caller, id: number): Promise<FoundNote> {
  const { companyId } = caller;
  const prospectId = await findNotePlace(world.table, companyId, id);
  const keyOf = (on: number) => keys.note(companyId, on, id);
  const found = prospectId === undefined ? undefined : await findAttached(world, caller, prospectId, keyOf);
  if (found === undefined) throw notFound("note");
  return { note: StoredNote.parse(found.item), importId: found.prospect.importId };
}

/** The check of the prospect is the first write of each transaction here. */
const isInvisible = (error: unknown): boolean =>
  error instanceof ConditionFailed && error.failed.some(({ index }) => index === 0);
