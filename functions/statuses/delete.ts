/** DELETE /api/statuses/{id}: deactivates a lead status. Prospects that have the status keep it. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deactivateStatus } from "#shared/reference/values.ts";

export const handler = command(
  {
    summary: "Deactivate a lead status",
    description:
      "Prospects keep the status, but it can no longer be assigned. A patch with `isActive` true activates it again.",
    allow: "admin",
    scope: "reference:write",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deactivateStatus(context, caller.companyId, path.id),
);
