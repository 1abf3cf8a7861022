/** Notes that users write on prospects. */
import * as z from "zod/mini";
import { Id, named, Timestamp } from "#shared/schema.ts";
import { UserSummary } from "#shared/users/schema.ts";

export const Note = named(
  "Note",
  z.object({
    id: Id,
    body: z.string(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    createdBy: z.nullable(UserSummary),
  }),
  "A note on a prospect.",
);
export type Note = z.infer<typeof Note>;

export const StoredNote = z.object({
  type: z.literal("note"),
  id: Id,
  prospectId: Id,
  body: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: z.nullable(Id),
  /** Set when the note came with an import: it fires no event of its own. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;
