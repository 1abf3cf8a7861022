/** Tags: free labels of a company for its prospects. */
import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { DisplayValue, HexColor, Id, named, Timestamp } from "#shared/schema.ts";

export const Tag = named("Tag", z.object({ id: Id, value: z.string(), color: HexColor }), "A label of the company.");
export type Tag = z.infer<typeof Tag>;

export const NewTag = z.object({ value: DisplayValue, color: z.optional(HexColor) });
export type NewTag = z.infer<typeof NewTag>;

export const TagPatch = z.object({ value: z.optional(DisplayValue), color: z.optional(HexColor) });
export type TagPatch = z.infer<typeof TagPatch>;

/** The tags that a prospect is to have, in this order; one that is named twice counts once. */
export const TagChoice = z.object({
  tagIds: z.array(Id).check(
    z.refine((ids) => new Set(ids).size <= limits.tagsPerProspect, {
      error: `must name at most ${limits.tagsPerProspect} tags`,
    }),
  ),
});
export type TagChoice = z.infer<typeof TagChoice>;

export const StoredTag = z.extend(Tag, {
  type: z.literal("tag"),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type StoredTag = z.infer<typeof StoredTag>;
