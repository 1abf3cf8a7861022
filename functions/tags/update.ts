/** PATCH /api/tags/{id}: changes a tag for all prospects that have it. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Tag, TagPatch } from "#shared/tags/schema.ts";
import { updateTag } from "#shared/tags/tags.ts";

export const handler = endpoint(
  {
    summary: "Change a tag",
    description: "Only sent fields change. Prospects show the new value and colour at once.",
    tag: "Tags",
    allow: "admin",
    path: IdPath,
    body: TagPatch,
    status: 200,
    response: Tag,
  },
  ({ world, caller, path, body }) => updateTag(world, caller.companyId, path.id, body),
);
