/** PATCH /api/tags/{id}: changes a tag. All prospects that have the tag show the change. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { TagPatch } from "#shared/reference/input.ts";
import { Tag } from "#shared/reference/schema.ts";
import { updateTag } from "#shared/reference/values.ts";

export const handler = command(
  {
    summary: "Change a tag",
    description: "Only sent fields change. Prospects show the new value and colour at once.",
    allow: "admin",
    scope: "reference:write",
    path: IdPath,
    body: TagPatch,
    response: Tag,
  },
  ({ context, caller, path, body }) => updateTag(context, caller.companyId, path.id, body),
);
