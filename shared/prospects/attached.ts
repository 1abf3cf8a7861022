/** Finds what hangs on a prospect (a note, an appointment) by its id alone, as far as the caller may see it. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import { absent } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { blockOf, type Key, keys } from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import type { StoredNote } from "#shared/prospects/note-schema.ts";
import { isPublished } from "#shared/prospects/published.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";
import { Id, Timestamp } from "#shared/schema.ts";

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

/** What leads to a note's row: notes stand in the order of their making. */
export interface NoteSpot {
  readonly prospectId: number;
  readonly createdAt: string;
}

const NotePlace = z.object({ id: Id, prospectId: Id, createdAt: Timestamp });

export const newNotePlace = ({ companyId, id, prospectId, createdAt }: StoredNote): Write => ({
  put: { ...besideKeys.notePlace(companyId, id), type: "place", id, prospectId, createdAt },
  when: absent,
});

/** Note and prospect. */
const PackedPlace = z.tuple([Id, Id]);
const NotePlaces = z.object({ createdAt: Timestamp, bytes: z.instanceof(Uint8Array) });

/** The places of an import's notes: one row for each block of ids, since a place of its own would cost a note as much again. */
export const packPlaces = (
  companyId: number,
  createdAt: string,
  notes: readonly { id: number; prospectId: number }[],
): (Key & Item)[] =>
  [...Map.groupBy(notes, ({ id }) => blockOf(id))].map(([block, own]) => {
    const bytes = packed(own.map(({ id, prospectId }): z.infer<typeof PackedPlace> => [id, prospectId]));
    return { ...besideKeys.notePlaces(companyId, block), type: "notePlaces", createdAt, bytes };
  });

/** By id: places of their own, and those among an import's. What is removed has none, or one that leads to nothing. */
export async function findNotePlaces(
  table: Table,
  companyId: number,
  ids: readonly number[],
): Promise<Map<number, NoteSpot>> {
  const blocks = [...new Set(ids.map(blockOf))];
  const items = await table.batchGet([
    ...[...new Set(ids)].map((id) => besideKeys.notePlace(companyId, id)),
    ...blocks.map((block) => besideKeys.notePlaces(companyId, block)),
  ]);
  const wanted = new Set(ids);
  const spots = new Map<number, NoteSpot>();
  for (const item of items.filter(({ type }) => type === "notePlaces")) {
    const { createdAt, bytes } = NotePlaces.parse(item);
    for (const [id, prospectId] of unpacked(z.array(PackedPlace), bytes)) {
      if (wanted.has(id)) spots.set(id, { prospectId, createdAt });
    }
  }
  for (const item of items.filter(({ type }) => type === "place")) {
    const { id, prospectId, createdAt } = NotePlace.parse(item);
    spots.set(id, { prospectId, createdAt });
  }
  return spots;
}

/** The row and its prospect; `undefined` when there is no such row for the caller. */
export async function findAttached(
  { table }: ApiContext,
  caller: Caller,
  prospectId: number,
  key: Key,
): Promise<{ prospect: StoredProspect; item: Item } | undefined> {
  const items = await table.batchGet([keys.prospect(caller.companyId, prospectId), key]);
  const item = items.find(({ type }) => type !== "prospect");
  const row = items.find(({ type }) => type === "prospect");
  // The rows of an import that failed are gone, and its notes' places may be there for a moment longer.
  if (row === undefined) return undefined;
  const prospect = StoredProspect.parse(row);
  const isThere = item !== undefined && isVisible(caller, prospect);
  return isThere && (await isPublished(table, caller.companyId, prospect.importId)) ? { prospect, item } : undefined;
}
