/** POST /api/statuses: creates a lead status. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { NewStatus } from "#shared/reference/input.ts";
import { Status } from "#shared/reference/schema.ts";
import { createStatus } from "#shared/reference/values.ts";

export const handler = command(
  {
    summary: "Create a lead status",
    description: `Values are unique in a company, ignoring case. A second status with the same value is a conflict. A company may have ${limits.statusesPerCompany} statuses.`,
    allow: "admin",
    scope: "reference:write",
    body: NewStatus,
    status: 201,
    response: Status,
  },
  ({ context, caller, body }) => createStatus(context, caller.companyId, body),
);
