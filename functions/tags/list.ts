/** GET /api/tags: lists the company's tags. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { Tag } from "#shared/reference/schema.ts";
import { listTags } from "#shared/reference/values.ts";

export const handler = endpoint(
  {
    summary: "List tags",
    description: "All tags in alphabetical order.",
    allow: "everyone",
    scope: "prospects:read",
    response: z.array(Tag),
  },
  ({ context, caller }) => listTags(context, caller.companyId),
);
