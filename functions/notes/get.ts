/** GET /api/notes/{id}: reads one note. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { getNote } from "#shared/prospects/notes.ts";
import { Note } from "#shared/prospects/schema.ts";

export const handler = endpoint(
  { summary: "Get a note", allow: "everyone", scope: "prospects:read", path: IdPath, response: Note },
  ({ context, caller, path }) => getNote(context, caller, path.id),
);
