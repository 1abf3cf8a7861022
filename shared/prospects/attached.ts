/** Finds what hangs on a prospect (a note, an appointment) by its id alone, as far as the caller may see it. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { absent } from "#shared/db/expression.ts";
import { blockOf, type Key, keys } from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Item, Table, Write } from "#shared/db/table.ts";
import { isPublished } from "#shared/imports/published.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";
import { Id } from "#shared/schema.ts";
import type { World } from "#shared/world.ts";

const Place = z.object({ type: z.literal("place"), prospectId: Id });

/** Written with the row that it leads to, and removed with it. */
export const newPlaceWrite = (place: Key, prospectId: number): Write => ({
  put: { ...place, type: "place", prospectId },
  when: absent,
});

/** Id of the prospect that it hangs on; `undefined` when there is no such thing. */
export async function findPlace(table: Table, place: Key): Promise<number | undefined> {
  const found = await table.get(place);
  return found === undefined ? undefined : Place.parse(found).prospectId;
}

/** Note and prospect. */
const NotePlace = z.tuple([Id, Id]);
const NotePlaces = z.object({ type: z.literal("notePlaces"), bytes: z.instanceof(Uint8Array) });

/** The places of an import's notes: one row for each block of ids, since a place of its own would cost a note as much again. */
export const packPlaces = (companyId: number, notes: readonly { id: number; prospectId: number }[]): (Key & Item)[] =>
  [...Map.groupBy(notes, ({ id }) => blockOf(id))].map(([block, own]) => {
    const bytes = packed(own.map(({ id, prospectId }): z.infer<typeof NotePlace> => [id, prospectId]));
    return { ...keys.notePlaces(companyId, block), type: "notePlaces", bytes };
  });

/** As `findPlace`: its own place, or among those of an import. What is removed has none, or one that leads to nothing. */
export async function findNotePlace(table: Table, companyId: number, id: number): Promise<number | undefined> {
  const items = await table.batchGet([keys.notePlace(companyId, id), keys.notePlaces(companyId, blockOf(id))]);
  const own = items.find(({ type }) => type === "place");
  if (own !== undefined) return Place.parse(own).prospectId;
  const [pack] = items;
  if (pack === undefined) return undefined;
  return unpacked(z.array(NotePlace), NotePlaces.parse(pack).bytes).find(([noteId]) => noteId === id)?.[1];
}

/** The row and its prospect; `undefined` when there is no such row for the caller. */
export async function findAttached(
  { table }: World,
  caller: Caller,
  prospectId: number,
  keyOf: (prospectId: number) => Key,
): Promise<{ prospect: StoredProspect; item: Item } | undefined> {
  const items = await table.batchGet([keys.prospect(caller.companyId, prospectId), keyOf(prospectId)]);
  const item = items.find(({ type }) => type !== "prospect");
  const row = items.find(({ type }) => type === "prospect");
  // The rows of an import that failed are gone, and its notes' places may be there for a moment longer.
  if (row === undefined) return undefined;
  const prospect = StoredProspect.parse(row);
  const isThere = item !== undefined && isVisible(caller, prospect);
  return isThere && (await isPublished(table, caller.companyId, prospect.importId)) ? { prospect, item } : undefined;
}
