/** PATCH /api/statuses/{id}: changes a lead status. All prospects that have the status show the change. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { StatusPatch } from "#shared/reference/input.ts";
import { Status } from "#shared/reference/schema.ts";
import { updateStatus } from "#shared/reference/values.ts";

export const handler = command(
  {
    summary: "Change a lead status",
    description:
      "Only sent fields change. Prospects show the new value and colour at once. The status history keeps the old ones.",
    allow: "admin",
    scope: "reference:write",
    path: IdPath,
    body: StatusPatch,
    response: Status,
  },
  ({ context, caller, path, body }) => updateStatus(context, caller.companyId, path.id, body),
);
