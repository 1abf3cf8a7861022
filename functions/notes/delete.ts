/** DELETE /api/notes/{id}: deletes a note. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteNote } from "#shared/prospects/notes.ts";

export const handler = command(
  {
    summary: "Delete a note",
    description: "Deletes the note permanently.",
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteNote(context, caller, path.id),
);
