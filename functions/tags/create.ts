/** POST /api/tags: a new tag. */
import { endpoint } from "#shared/http/endpoint.ts";
import { limits } from "#shared/limits.ts";
import { NewTag, Tag } from "#shared/reference/schema.ts";
import { createTag } from "#shared/reference/tags.ts";

export const handler = endpoint(
  {
    summary: "Create a tag",
    description: `Its value is unique in the company without case; a second one of the same value is a conflict. At most ${limits.tagsPerCompany} tags per company.`,
    tag: "Tags",
    allow: "admin",
    body: NewTag,
    status: 201,
    response: Tag,
  },
  ({ context, caller, body }) => createTag(context, caller.companyId, body),
);
