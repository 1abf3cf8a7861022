/** The schemas of companies, lead statuses and tags: API requests and answers, and stored rows. */

import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { COLOR_TEXT, DisplayValue, HexColor, Id, named, Timestamp, text, VALUE_TEXT } from "#shared/schema.ts";

export const Company = named(
  "Company",
  z.object({ id: Id, name: text(limits.name, 1), createdAt: Timestamp, updatedAt: Timestamp }),
  "The tenant that every record belongs to.",
);
export type Company = z.infer<typeof Company>;

export const StoredCompany = z.extend(Company, {
  type: z.literal("company"),
  /** The number of changes of statuses, tags and users. It is the version of the cached dictionary. */
  dictionaryVersion: z.optional(z.int()),
});
export type StoredCompany = z.infer<typeof StoredCompany>;

export const StatusSummary = named(
  "StatusSummary",
  z.object({ id: Id, value: z.string(), color: z.string() }),
  "A lead status as prospects show it.",
);
export type StatusSummary = z.infer<typeof StatusSummary>;

export const Status = named(
  "Status",
  z.object({
    id: Id,
    value: z.string(),
    color: HexColor,
    sortOrder: z.int(),
    isActive: z.boolean(),
  }),
  "A lead status. An inactive status stays on the prospects that have it, but cannot be assigned to others.",
);
export type Status = z.infer<typeof Status>;

const SortOrder = z.int().check(z.minimum(0), z.maximum(1_000_000));

export const NewStatus = z.object({
  value: DisplayValue,
  color: z.optional(HexColor),
  /** The position in lists. The default is after all other statuses. */
  sortOrder: z.optional(SortOrder),
});
export type NewStatus = z.infer<typeof NewStatus>;

/* @__PURE__ */ explain([NewStatus], () => ({ example: { value: "Appointment set", color: "#1D4ED8" } }));

export const StatusPatch = z.object({
  value: z.optional(DisplayValue),
  color: z.optional(HexColor),
  sortOrder: z.optional(SortOrder),
  isActive: z.optional(z.boolean()),
});
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

export const StoredStatus = z.extend(Status, {
  type: z.literal("status"),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type StoredStatus = z.infer<typeof StoredStatus>;

/** Gray: the default colour of statuses and tags, and of a map pin without a status. */
export const DEFAULT_COLOR = "#9CA3AF";

export const startingStatuses: ReadonlyArray<{ value: string; color: string }> = [
  { value: "New", color: "#3B82F6" },
  { value: "Not Home", color: "#F59E0B" },
  { value: "Go Back", color: "#8B5CF6" },
  { value: "Interested", color: "#10B981" },
  { value: "Appointment Set", color: "#06B6D4" },
  { value: "Not Interested", color: "#EF4444" },
  { value: "Sold", color: "#15803D" },
  { value: "Do Not Knock", color: "#111827" },
];

export const Tag = named("Tag", z.object({ id: Id, value: z.string(), color: HexColor }), "A label of the company.");
export type Tag = z.infer<typeof Tag>;

export const NewTag = z.object({ value: DisplayValue, color: z.optional(HexColor) });
export type NewTag = z.infer<typeof NewTag>;

/* @__PURE__ */ explain([NewTag], () => ({ example: { value: "Hail damage", color: "#DC2626" } }));

export const TagPatch = z.object({ value: z.optional(DisplayValue), color: z.optional(HexColor) });
export type TagPatch = z.infer<typeof TagPatch>;

/* @__PURE__ */ explain([Tag, NewTag, TagPatch], () => ({ fields: { value: VALUE_TEXT, color: COLOR_TEXT } }));
/* @__PURE__ */ explain([TagPatch], () => ({ example: { color: "#B91C1C" } }));

/** The complete new list of a prospect's tags, in this order. */
export const TagChoice = z.object({
  tagIds: z.array(Id).check(
    z.refine((ids) => new Set(ids).size <= limits.tagsPerProspect, {
      error: `must name at most ${limits.tagsPerProspect} tags`,
    }),
  ),
});
export type TagChoice = z.infer<typeof TagChoice>;

/* @__PURE__ */ explain([TagChoice], () => ({
  fields: {
    tagIds: `Tags of the company, at most ${limits.tagsPerProspect} different ones. They replace all tags of the prospect.`,
  },
  example: { tagIds: [1025, 1031] },
}));

export const StoredTag = z.extend(Tag, {
  type: z.literal("tag"),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type StoredTag = z.infer<typeof StoredTag>;
