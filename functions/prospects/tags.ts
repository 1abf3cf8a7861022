/** PUT /api/prospects/{id}/tags: replaces the tags of a prospect. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import * as limits from "#shared/limits.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { setTags } from "#shared/prospects/write.ts";
import { TagChoice } from "#shared/reference/input.ts";

export const handler = command(
  {
    summary: "Set the tags of a prospect",
    description: `Replaces all tags and keeps the order. An id that is sent twice counts once. A prospect may have ${limits.tagsPerProspect} tags.`,
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    body: TagChoice,
    response: Prospect,
  },
  ({ context, caller, path, body }) => setTags(context, caller, path.id, body),
);
