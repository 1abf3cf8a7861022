/** GET /api/tags/{id}: reads one tag. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Tag } from "#shared/reference/schema.ts";
import { getTag } from "#shared/reference/values.ts";

export const handler = endpoint(
  { summary: "Get a tag", allow: "everyone", scope: "prospects:read", path: IdPath, response: Tag },
  ({ context, caller, path }) => getTag(context, caller.companyId, path.id),
);
