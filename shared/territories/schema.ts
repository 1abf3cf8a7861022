/** Territories: named zones on the map, given to a user or to nobody. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Id, named, Timestamp, text } from "#shared/schema.ts";

/** `[lng, lat]` in degrees. Not rounded: a polygon is given back exactly as it came. */
const Point = z.tuple([
  z.number().check(z.minimum(-180), z.maximum(180)),
  z.number().check(z.minimum(-90), z.maximum(90)),
]);

const Ring = z.array(Point);
/** What a client may send. */
const RingInput = Ring.check(z.minLength(limits.polygonPointsMin), z.maxLength(limits.polygonPointsMax));

export const Territory = named(
  "Territory",
  z.object({
    id: Id,
    name: z.string(),
    polygon: Ring,
    totalProperties: z.int(),
    assignedToUserId: z.nullable(Id),
    companyId: Id,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  "A named zone. Its polygon is a ring of `[lng, lat]` points, empty where none was sent.",
);
export type Territory = z.infer<typeof Territory>;

const Count = z.int().check(z.minimum(0));

export const NewTerritory = named(
  "NewTerritory",
  z.object({
    name: z._default(text(limits.name), "Untitled Territory"),
    /** Not sent: no polygon yet, shown as `[]`, which nobody may send. */
    polygon: z.optional(RingInput),
    totalProperties: z._default(Count, 0),
    assignedToUserId: z._default(z.nullable(Id), null),
  }),
);
export type NewTerritory = z.output<typeof NewTerritory>;

export const TerritoryPatch = named(
  "TerritoryPatch",
  z.object({
    name: z.optional(text(limits.name)),
    polygon: z.optional(RingInput),
    totalProperties: z.optional(Count),
    assignedToUserId: z.optional(z.nullable(Id)),
  }),
);
export type TerritoryPatch = z.output<typeof TerritoryPatch>;

export const StoredTerritory = z.extend(Territory, {
  type: z.literal("territory"),
  /** Packed (polygon.ts). */
  polygon: z.instanceof(Uint8Array),
  /** Bytes of the polygon as text, as they are counted. */
  polygonBytes: z.int(),
  createdBy: Id,
  updatedBy: Id,
  /** Counts the writes of this row: condition of the next one, and part of its events' ids. */
  version: z.int(),
  deletedAt: z.optional(Timestamp),
});
export type StoredTerritory = z.infer<typeof StoredTerritory>;
