/** GET /api/notes/{id}: one note. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { getNote } from "#shared/notes/notes.ts";
import { Note } from "#shared/notes/schema.ts";

export const handler = endpoint(
  { summary: "Get a note", tag: "Notes", allow: "everyone", path: IdPath, status: 200, response: Note },
  ({ world, caller, path }) => getNote(world, caller, path.id),
);
