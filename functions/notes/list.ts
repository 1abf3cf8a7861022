/** GET /api/prospects/{id}/notes: all notes of a prospect. */
import * as z from "zod/mini";
import { IdPath } from "#shared/http/paths.ts";
import { streamItems } from "#shared/http/stream-endpoint.ts";
import { listNotes } from "#shared/notes/notes.ts";
import { Note } from "#shared/notes/schema.ts";

export const handler = streamItems(
  {
    summary: "List a prospect's notes",
    description: "All of them, newest first.",
    tag: "Notes",
    allow: "everyone",
    path: IdPath,
    status: 200,
    response: z.array(Note),
  },
  async ({ world, caller, path }) => listNotes(world, caller, path.id),
);
