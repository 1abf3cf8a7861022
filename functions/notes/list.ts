/** GET /api/prospects/{id}/notes: lists all notes of a prospect. */
import * as z from "zod/mini";
import { IdPath } from "#shared/http/paths.ts";
import { streamItems } from "#shared/http/streaming.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { Note } from "#shared/prospects/schema.ts";

export const handler = streamItems(
  {
    summary: "List a prospect's notes",
    description: "All notes of the prospect, newest first.",
    allow: "everyone",
    scope: "prospects:read",
    path: IdPath,
    response: z.array(Note),
  },
  async ({ context, caller, path }) => listNotes(context, caller, path.id),
);
