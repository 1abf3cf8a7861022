/**
 * What a rebuilt run must list beside its rows. Its rows were read while others went on writing, so that one of them may be newer
 * than what a run flushed since, or an entry that is not flushed yet, says of the same record. Of all records that these
 * speak of, the rebuilt run lists the version that it knows; of all others there is nothing to hide.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Unflushed } from "#shared/company-index/delta.ts";
import type { Records } from "#shared/company-index/records.ts";
import type { NoteEntry } from "#shared/company-index/row.ts";
import type { Aside } from "#shared/company-index/run-pieces.ts";
import { NewestVersions } from "#shared/company-index/versions.ts";

/** The versions of all records that were read, deleted prospects included. */
export interface KnownVersions {
  readonly prospects: NewestVersions;
  readonly notes: NewestVersions;
}

export interface ListedVersions {
  readonly prospects: { id: number; version: number }[];
  readonly notes: { id: number; version: number }[];
}

/** What may say something of a record besides the rebuilt run. */
export interface Others {
  readonly unflushed: readonly Pick<Unflushed, "entries" | "notes">[];
  readonly asides: readonly Aside[];
}

/** `gone`: notes that were deleted before they were read. */
export function versionsToList(known: KnownVersions, others: Others, gone: ReadonlySet<number>): ListedVersions {
  const prospects = new Set(others.unflushed.flatMap(({ entries }) => entries.map(({ id }) => id)));
  const claims = noteClaims(others);
  const noteIds = new Set(claims.map(({ noteId }) => noteId));
  for (const { overrides } of others.asides) {
    for (const id of overrides.prospects.ids) prospects.add(id);
    for (const id of overrides.notes.ids) noteIds.add(id);
  }
  const deletions = new NewestVersions();
  // As the deletion was listed, which stood in a run that is replaced.
  for (const { noteId, version } of claims) if (gone.has(noteId)) deletions.add(noteId, version + 1, 0);
  return {
    prospects: listed(known.prospects, prospects),
    notes: [...listed(known.notes, noteIds), ...deletions],
  };
}

const listed = (versions: NewestVersions, ids: Iterable<number>): { id: number; version: number }[] =>
  [...ids].flatMap((id) => {
    const version = versions.versionOf(id);
    return version === 0 ? [] : [{ id, version }];
  });

const noteClaims = ({ unflushed, asides }: Others): NoteEntry[] => [
  ...unflushed.flatMap(({ notes }) => notes),
  ...asides.flatMap(({ looseNotes }) => looseNotes),
];

/**
 * Adds the notes that others speak of and that were deleted before they could be read. One that no block held may as well have been
 * written after its block was read: its row tells, at the second look at the latest, as an entry can be seen a moment
 * before its row.
 */
export async function findGone(
  records: Records,
  companyId: number,
  known: KnownVersions,
  others: Others,
  gone: Set<number>,
  settleMs: number,
): Promise<void> {
  const deletions = new NewestVersions();
  for (const { overrides } of others.asides) {
    for (const [i, id] of overrides.notes.ids.entries()) deletions.add(id, overrides.notes.versions[i] ?? 0, 0);
  }
  const claims = noteClaims(others);
  for (const { noteId, version, text } of claims) if (text === null) deletions.add(noteId, version, 0);
  const isOpen = ({ noteId, version }: NoteEntry): boolean =>
    !gone.has(noteId) && known.notes.versionOf(noteId) === 0 && deletions.versionOf(noteId) <= version;
  const withoutRow = async (notes: readonly NoteEntry[]): Promise<readonly NoteEntry[]> => {
    if (notes.length === 0) return [];
    const found = new Set((await records.readSome(companyId, [], notes)).notes.map(({ noteId }) => noteId));
    return notes.filter(({ noteId }) => !found.has(noteId));
  };
  const left = await withoutRow(claims.filter((claim) => claim.text !== null && isOpen(claim)));
  if (left.length > 0) await sleep(settleMs);
  for (const { noteId } of await withoutRow(left)) gone.add(noteId);
}
