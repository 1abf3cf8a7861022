/** The request and the answer of `GET /api/changes`. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { Flag, Id, named, PositiveInteger } from "#shared/schema.ts";

/** The order of the names must not change, because cursors contain their positions. Append new names. */
export const ChangeType = named(
  "ChangeType",
  z.enum(["prospects", "notes", "appointments", "territories", "statuses", "tags", "users"]),
  "A kind of record that clients can keep in sync.",
);
export type ChangeType = z.infer<typeof ChangeType>;

const Types = z.pipe(
  z.pipe(
    z.string(),
    z.transform((value) => [...new Set(value.split(",").map((name) => name.trim()))].filter((name) => name !== "")),
  ),
  z.array(ChangeType).check(z.minLength(1, "must name at least one type")),
);

export const ChangesQuery = z.object({
  types: z.optional(Types),
  limit: z._default(
    PositiveInteger.check(z.maximum(limits.changesMax, `must be at most ${limits.changesMax}`)),
    limits.changesDefault,
  ),
  cursor: z.optional(z.string().check(z.maxLength(limits.changesCursor), z.minLength(1))),
  checksum: z.optional(Flag),
});
export type ChangesQuery = z.output<typeof ChangesQuery>;

/* @__PURE__ */ explain([ChangesQuery], () => ({
  fields: {
    types: {
      description: `Comma-separated: ${ChangeType.options.join(", ")}. The default is all of them. With a cursor, the types of the cursor.`,
      example: "prospects,notes",
    },
    limit: {
      description: "Maximum number of items. A page may have fewer, even none, while `hasMore` is true.",
      example: limits.changesDefault,
      schema: { type: "integer", minimum: 1, maximum: limits.changesMax, default: limits.changesDefault },
    },
    cursor: {
      description: "The cursor of the last page. Leave it out to begin with a snapshot.",
      example: "AV8kQ0mV2pQmZ2h0",
    },
    checksum: {
      description:
        "If true, an answer with `hasMore: false` has `checksums`. Ask once a day, and after an upgrade of the app.",
      example: "true",
    },
  },
}));

/** The record. It is not checked here, because items.ts has already checked it with the schema of its type. */
const Data = z
  .custom<Record<string, unknown>>((value) => typeof value === "object" && value !== null)
  .check(z.meta({ type: "object", additionalProperties: true }));

/** One flat schema for all items instead of a `oneOf`, because client generators make poor code for `oneOf`. */
export const ChangeItem = named(
  "ChangeItem",
  z.object({
    type: ChangeType,
    id: Id,
    version: z.int(),
    op: z.enum(["upsert", "remove"]),
    reason: z.optional(z.enum(["deleted", "hidden"])),
    data: z.optional(Data),
  }),
  "The change of one record.",
);
export type ChangeItem = z.infer<typeof ChangeItem>;

export const CheckedType = z.enum(["prospects", "territories", "statuses", "tags", "users"]);
export type CheckedType = z.infer<typeof CheckedType>;

const Checksum = z.optional(z.string().check(z.regex(/^[0-9a-f]{16}$/)));

export const Checksums = named(
  "Checksums",
  z.object({ prospects: Checksum, territories: Checksum, statuses: Checksum, tags: Checksum, users: Checksum }),
  "One checksum for each type, of the records that the client holds after this answer: the XOR of the 64-bit FNV-1a hashes of the texts `type:id:version`, as 16 hexadecimal digits. Without records, the digits are zeros. If others write at the same moment, a checksum may already include their change: after a difference, ask once more. If it differs again, begin anew without a cursor.",
);
export type Checksums = z.infer<typeof Checksums>;

export const ChangesPage = named(
  "ChangesPage",
  z.object({
    phase: z.enum(["snapshot", "changes"]),
    items: z.array(ChangeItem),
    cursor: z.string(),
    hasMore: z.boolean(),
    total: z.optional(z.int()),
    checksums: z.optional(Checksums),
  }),
  "A page of changes. A client applies each item whose `version` is not lower than that of its copy.",
);
export type ChangesPage = z.infer<typeof ChangesPage>;

/* @__PURE__ */ explain([ChangeItem], () => ({
  fields: {
    version: "Grows with each change of the record, also of a name that it shows. Operations take it as `baseVersion`.",
    op: "`upsert` has `data`, `remove` has `reason`.",
    reason: "`hidden` if the record still exists, but the caller may no longer see it.",
    data: "The record as lists show it now: a `Prospect`, `Note`, `Appointment`, `Territory`, `Status`, `Tag` or `User`.",
  },
}));
/* @__PURE__ */ explain([ChangesPage], () => ({
  fields: {
    phase: "`snapshot` while the answer lists what the caller may see, then `changes`.",
    cursor: "For the next request. Valid for 60 days.",
    hasMore: "False if, as of this answer, there is nothing else.",
    total:
      "Only in a snapshot: the number of records at its beginning. If others write during the first request, the number of records of each type is that of one moment of this request.",
    checksums: "Only with `checksum=true` and `hasMore: false`.",
  },
}));
