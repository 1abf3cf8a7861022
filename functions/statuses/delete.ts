/** DELETE /api/statuses/{id}: deactivates a lead status. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deactivateStatus } from "#shared/reference/statuses.ts";

export const handler = endpoint(
  {
    summary: "Deactivate a lead status",
    description: "Prospects that have it keep it; nobody can be given it any more. `isActive` brings it back.",
    tag: "Statuses",
    allow: "admin",
    path: IdPath,
    status: 200,
    response: Deleted,
  },
  async ({ context, caller, path }) => {
    await deactivateStatus(context, caller.companyId, path.id);
    return { id: path.id };
  },
);
