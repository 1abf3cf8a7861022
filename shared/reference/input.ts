/** The schemas of request bodies for lead statuses and tags. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { DisplayValue, Status, StatusSummary, Tag } from "#shared/reference/schema.ts";
import { COLOR_TEXT, HexColor, Id, named, VALUE_TEXT } from "#shared/schema.ts";

const SortOrder = z.int().check(z.minimum(0), z.maximum(1_000_000));

export const NewStatus = named(
  "NewStatus",
  z.object({
    value: DisplayValue,
    color: z.optional(HexColor),
    sortOrder: z.optional(SortOrder),
  }),
  "A new lead status.",
);
export type NewStatus = z.infer<typeof NewStatus>;

/* @__PURE__ */ explain([NewStatus], () => ({ example: { value: "Call Back", color: "#1D4ED8" } }));

export const StatusPatch = named(
  "StatusPatch",
  z.extend(z.partial(NewStatus), { isActive: z.optional(z.boolean()) }),
  "Only sent fields change.",
);
export type StatusPatch = z.infer<typeof StatusPatch>;

/* @__PURE__ */ explain([Status, StatusSummary, NewStatus, StatusPatch], () => ({
  fields: {
    value: VALUE_TEXT,
    color: COLOR_TEXT,
    sortOrder: "Position in the list, smallest first. A new status without one comes last.",
    isActive: "An inactive status cannot be assigned to a prospect.",
  },
}));
/* @__PURE__ */ explain([StatusPatch], () => ({ example: { color: "#15803D" } }));

export const NewTag = named("NewTag", z.object({ value: DisplayValue, color: z.optional(HexColor) }), "A new tag.");
export type NewTag = z.infer<typeof NewTag>;

/* @__PURE__ */ explain([NewTag], () => ({ example: { value: "Corner Lot", color: "#DC2626" } }));

export const TagPatch = named("TagPatch", z.partial(NewTag), "Only sent fields change.");
export type TagPatch = z.infer<typeof TagPatch>;

/* @__PURE__ */ explain([Tag, NewTag, TagPatch], () => ({ fields: { value: VALUE_TEXT, color: COLOR_TEXT } }));
/* @__PURE__ */ explain([TagPatch], () => ({ example: { color: "#B91C1C" } }));

export const TagChoice = named(
  "TagChoice",
  z.object({
    tagIds: z.array(Id).check(
      z.refine((ids) => new Set(ids).size <= limits.tagsPerProspect, {
        error: `must name at most ${limits.tagsPerProspect} tags`,
      }),
    ),
  }),
  "The new tags of a prospect.",
);
export type TagChoice = z.infer<typeof TagChoice>;

/* @__PURE__ */ explain([TagChoice], () => ({
  fields: {
    tagIds: `Tags of the company, at most ${limits.tagsPerProspect} different ones. They replace all tags of the prospect.`,
  },
  example: { tagIds: [143] },
}));
