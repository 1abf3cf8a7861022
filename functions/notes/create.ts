/** POST /api/prospects/{id}/notes: creates a note on a prospect. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import * as limits from "#shared/limits.ts";
import { NewNote } from "#shared/prospects/input.ts";
import { createNote } from "#shared/prospects/notes.ts";
import { Note } from "#shared/prospects/schema.ts";

export const handler = command(
  {
    summary: "Write a note on a prospect",
    description: `The caller becomes \`createdBy\`. \`Location\` is the path below \`/api/notes\`. A prospect may have ${limits.notesPerProspect} notes, not counting one from its import. Above that the answer is 409.`,
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    body: NewNote,
    status: 201,
    response: Note,
    collection: "/api/notes",
  },
  ({ context, caller, path, body }) => createNote(context, caller, path.id, body),
);
