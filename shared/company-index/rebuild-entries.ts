/** Entries that were unflushed when a rebuild began: all that they say, and more, is in the rebuilt run, so they go. */
import { removeUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import type { KnownVersions } from "#shared/company-index/rebuild-overrides.ts";
import type { Records } from "#shared/company-index/records.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** Only when the rebuilt run is in place. */
export async function removeReplaced(
  table: Table,
  records: Records,
  companyId: number,
  known: KnownVersions,
  { entries, notes, keys: all, aside }: Unflushed,
): Promise<void> {
  const newer = entries.filter(({ id, version }) => version > known.prospects.versionOf(id));
  const newerNotes = notes.filter(({ noteId, version }) => version > known.notes.versionOf(noteId));
  const now = await records.readSome(
    companyId,
    newer.map(({ id }) => id),
    newerNotes,
  );
  const prospectNow = new Map(now.prospects.map(({ id, version }) => [id, version]));
  const noteNow = new Map(now.notes.map(({ noteId, version }) => [noteId, version]));
  // An entry can be seen a moment before its row: it stays. One that no row has come for belongs to no write at all.
  const staying = new Set([
    ...newer
      .filter(({ id, version }) => (prospectNow.get(id) ?? 0) >= version)
      .map(({ id, version }) => keys.prospectDelta(companyId, id, version).sk),
    ...newerNotes
      .filter(({ noteId, version }) => (noteNow.get(noteId) ?? 0) >= version)
      .map(({ prospectId, noteId, version }) => keys.noteDelta(companyId, prospectId, noteId, version).sk),
  ]);
  const going = all.filter(({ sk }) => !staying.has(sk));
  await removeUnflushed(table, companyId, { keys: going, aside });
}
