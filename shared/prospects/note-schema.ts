/** Notes that users write on prospects. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { limits } from "#shared/limits.ts";
import { Id, named, Timestamp, text } from "#shared/schema.ts";

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

const Body = text(limits.note, 1);

export const NewNote = z.object({ body: Body });
export type NewNote = z.infer<typeof NewNote>;

export const NotePatch = z.object({ body: z.optional(Body) });
export type NotePatch = z.infer<typeof NotePatch>;

export const StoredNote = z.object({
  type: z.literal("note"),
  id: Id,
  companyId: Id,
  prospectId: Id,
  body: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: z.nullable(Id),
  /** Counts the writes of this row: condition of the next one, and part of its events' ids. */
  version: z.int(),
  /** Set when the note came with an import: it fires no event of its own. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;
