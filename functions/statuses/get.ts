/** GET /api/statuses/{id}: one lead status. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Status } from "#shared/statuses/schema.ts";
import { getStatus } from "#shared/statuses/statuses.ts";

export const handler = endpoint(
  { summary: "Get a lead status", tag: "Statuses", allow: "everyone", path: IdPath, status: 200, response: Status },
  ({ world, caller, path }) => getStatus(world, caller.companyId, path.id),
);
