/** GET /api/statuses/{id}: reads one lead status. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Status } from "#shared/reference/schema.ts";
import { getStatus } from "#shared/reference/values.ts";

export const handler = endpoint(
  { summary: "Get a lead status", allow: "everyone", scope: "prospects:read", path: IdPath, response: Status },
  ({ context, caller, path }) => getStatus(context, caller.companyId, path.id),
);
