/** PATCH /api/notes/{id}: changes the text of a note. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { NotePatch } from "#shared/prospects/input.ts";
import { updateNote } from "#shared/prospects/notes.ts";
import { Note } from "#shared/prospects/schema.ts";

export const handler = command(
  {
    summary: "Change a note",
    description: "Every user who sees the prospect may change its notes. `createdBy` stays the same.",
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    body: NotePatch,
    response: Note,
  },
  ({ context, caller, path, body }) => updateNote(context, caller, path.id, body),
);
