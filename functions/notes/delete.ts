/** DELETE /api/notes/{id}: deletes a note. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteNote } from "#shared/prospects/notes.ts";

export const handler = endpoint(
  {
    summary: "Delete a note",
    description: "Deletes the note permanently.",
    tag: "Notes",
    allow: "everyone",
    path: IdPath,
    status: 200,
    response: Deleted,
  },
  async ({ context, caller, path }) => {
    await deleteNote(context, caller, path.id);
    return { id: path.id };
  },
);
