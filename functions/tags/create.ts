/** POST /api/tags: creates a tag. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { NewTag } from "#shared/reference/input.ts";
import { Tag } from "#shared/reference/schema.ts";
import { createTag } from "#shared/reference/values.ts";

export const handler = command(
  {
    summary: "Create a tag",
    description: `Values are unique in a company, ignoring case. A second tag with the same value is a conflict. A company may have ${limits.tagsPerCompany} tags.`,
    allow: "admin",
    scope: "reference:write",
    body: NewTag,
    status: 201,
    response: Tag,
  },
  ({ context, caller, body }) => createTag(context, caller.companyId, body),
);
