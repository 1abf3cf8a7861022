/** Writes a prospect for a bulk job. By the mark `bulk` in the row, the job recognises its own write after a crash. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Condition, Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { conditionHolds } from "#shared/errors.ts";
import { withPatch } from "#shared/patch.ts";
import { agendaEntry, agendaRemoval, agendaWrites, readAppointments } from "#shared/prospects/agenda.ts";
import { replaceNote, replaceProspect } from "#shared/prospects/rows.ts";
import { BulkFields, type BulkMark, StoredNote, type StoredProspect } from "#shared/prospects/stored.ts";
import { nextVersion } from "#shared/prospects/write.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

const BULK_SOURCE = "bulk";

type Field = keyof BulkFields;
const all: readonly Field[] = ["statusId", "assignedToUserId", "assignedByUserId", "tagIds", "deletedAt"];

const picked = (from: BulkFields, isWanted: (field: Field) => boolean): BulkFields =>
  BulkFields.parse(Object.fromEntries(all.filter(isWanted).map((field) => [field, from[field]])));

/** Returns the fields of `from` that `like` has too. */
export const commonFields = (from: BulkFields, like: BulkFields): BulkFields =>
  picked(from, (field) => like[field] !== undefined);

const ownFields = (prospect: StoredProspect): BulkFields => ({ ...prospect, deletedAt: prospect.deletedAt ?? null });

const isEqual = (prospect: StoredProspect, wanted: BulkFields, field: Field): boolean =>
  JSON.stringify(wanted[field]) === JSON.stringify(ownFields(prospect)[field]);

export const differing = (prospect: StoredProspect, wanted: BulkFields): BulkFields =>
  picked(wanted, (field) => wanted[field] !== undefined && !isEqual(prospect, wanted, field));

export const equalling = (prospect: StoredProspect, wanted: BulkFields): BulkFields =>
  picked(wanted, (field) => wanted[field] !== undefined && isEqual(prospect, wanted, field));

export const isEmpty = (fields: BulkFields): boolean => Object.keys(fields).length === 0;

export interface JobWrite {
  /** The new values. All must differ from those of the prospect. */
  readonly after: BulkFields;
  readonly job: Pick<BulkMark, "jobId" | "events">;
  readonly dictionary: Dictionary;
  readonly deletedIf?: Condition | undefined;
}

/** Writes the values with the job's mark. Throws ConditionFailed if the row is newer than `current`, or does not meet `deletedIf`. */
export async function writeByJob(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  { after, job, dictionary, deletedIf }: JobWrite,
): Promise<BulkMark> {
  const version = current.version + 1;
  const bulk: BulkMark = { ...job, version, before: commonFields(ownFields(current), after), after };
  const { deletedAt = current.deletedAt, ...fields } = after;
  const next: StoredProspect = {
    ...withPatch(current, fields),
    deletedAt: deletedAt ?? undefined,
    updatedAt: iso(context.clock.now()),
    updatedBy: caller.userId,
    version,
    bulk,
  };
  await context.table.transact(await writesOf(context, current, next, dictionary, deletedIf));
  return bulk;
}

async function writesOf(
  context: ApiContext,
  current: StoredProspect,
  next: StoredProspect,
  dictionary: Dictionary,
  deletedIf?: Condition,
): Promise<Write[]> {
  const [wasDeleted, isDeleted] = [current.deletedAt !== undefined, next.deletedAt !== undefined];
  if (isDeleted && !wasDeleted) return [...replaceProspect(current, next, deletedIf), ...agendaRemoval(current)];
  if (!isDeleted && wasDeleted) {
    // The agenda was deleted with the prospect. It is made again from the appointments, which cannot have changed since.
    const appointments = await readAppointments(context.table, current);
    const entries = appointments.filter(({ deletedAt }) => deletedAt === undefined).map(agendaEntry);
    return [...replaceProspect(current, next), ...(entries.length === 0 ? [] : agendaWrites(next, next, entries))];
  }
  return (await nextVersion(context, current, next, { dictionary, source: BULK_SOURCE })).writes;
}

/** Maximum notes in a transaction. Each note has at most three writes, and DynamoDB accepts 100 writes in a transaction. */
const NOTES_AT_ONCE = 33;

/**
 * Adds the notes of a restored prospect to the index again, by new versions of their rows. A merge removes the notes of deleted prospects
 * from the index, so call this function after the restore. A repeated call does no harm.
 */
export async function indexNotesAgain(table: Table, companyId: number, prospectId: number): Promise<void> {
  let notes: StoredNote[] = [];
  for await (const item of table.query(attachedKeys.notes(companyId, prospectId))) {
    notes.push(StoredNote.parse(item));
    if (notes.length < NOTES_AT_ONCE) continue;
    await replaceAll(table, notes);
    notes = [];
  }
  await replaceAll(table, notes);
}

const replaced = (note: StoredNote): Write[] => replaceNote(note, { ...note, version: note.version + 1 });

/** Writes the notes in one transaction. If a user has changed one of them, writes only the others: the user's write indexes this note. */
async function replaceAll(table: Table, notes: readonly StoredNote[]): Promise<void> {
  if (notes.length === 0 || (await conditionHolds(table.transact(notes.flatMap(replaced))))) return;
  for (const note of notes) await conditionHolds(table.transact(replaced(note)));
}
