/** POST /api/statuses: a new lead status. */
import { endpoint } from "#shared/http/endpoint.ts";
import { limits } from "#shared/limits.ts";
import { NewStatus, Status } from "#shared/reference/schema.ts";
import { createStatus } from "#shared/reference/statuses.ts";

export const handler = endpoint(
  {
    summary: "Create a lead status",
    description: `Its value is unique in the company without case; a second one of the same value is a conflict. At most ${limits.statusesPerCompany} statuses per company.`,
    tag: "Statuses",
    allow: "admin",
    body: NewStatus,
    status: 201,
    response: Status,
  },
  ({ context, caller, body }) => createStatus(context, caller.companyId, body),
);
