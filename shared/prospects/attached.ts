/** Finds what hangs on a prospect (a note, an appointment) by its id alone, as far as the caller may see it. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { absent } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Item, Write } from "#shared/db/table.ts";
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

/** The row and its prospect, in two rounds; `undefined` when there is no such row for the caller. */
export async function findAttached(
  { table }: World,
  caller: Caller,
  place: Key,
  keyOf: (prospectId: number) => Key,
): Promise<{ prospect: StoredProspect; item: Item } | undefined> {
  const found = await table.get(place);
  if (found === undefined) return undefined;
  const { prospectId } = Place.parse(found);
  const items = await table.batchGet([keys.prospect(caller.companyId, prospectId), keyOf(prospectId)]);
  const item = items.find(({ type }) => type !== "prospect");
  const prospect = StoredProspect.parse(items.find(({ type }) => type === "prospect"));
  return item !== undefined && isVisible(caller, prospect) ? { prospect, item } : undefined;
}
