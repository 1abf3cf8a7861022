/** The schemas of companies, lead statuses and tags. */
import * as z from "zod/mini";
import { Renames } from "#shared/auth/user-schema.ts";
import * as limits from "#shared/limits.ts";
import { codePoints, HexColor, Id, label, named, Timestamp, text } from "#shared/schema.ts";

export const Company = named(
  "Company",
  z.object({ id: Id, name: text(limits.name, 1), createdAt: Timestamp, updatedAt: Timestamp }),
  "The tenant that every record belongs to.",
);
export type Company = z.infer<typeof Company>;

export const StoredCompany = z.extend(Company, {
  type: z.literal("company"),
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

/** The fields of a stored status or tag that the API does not show. */
const hidden = { version: z.int(), renames: Renames, createdAt: Timestamp, updatedAt: Timestamp };

export const StoredStatus = z.extend(Status, { type: z.literal("status"), ...hidden });
export type StoredStatus = z.infer<typeof StoredStatus>;

/** Gray, the default colour of statuses and tags, and of map pins without a status. */
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

export const StoredTag = z.extend(Tag, { type: z.literal("tag"), ...hidden });
export type StoredTag = z.infer<typeof StoredTag>;

/**
 * The name of a status or tag. It contains no comma or semicolon, because these separate values in filters and CSV cells. The length limit
 * also applies to the NFC form, which can be longer than the value and is part of a table key of at most 1 024 bytes.
 */
export const DisplayValue = z.pipe(
  text(limits.displayValue, 1).check(z.trim()),
  label(limits.displayValue).check(
    z.regex(/^[^,;]*$/, "must not hold a comma or semicolon"),
    z.refine((value) => codePoints(value.normalize("NFC")) <= limits.displayValue, {
      error: `must have at most ${limits.displayValue} characters`,
    }),
  ),
);
