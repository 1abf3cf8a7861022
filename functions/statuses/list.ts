/** GET /api/statuses: lists the company's lead statuses. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { Status } from "#shared/reference/schema.ts";
import { listStatuses } from "#shared/reference/values.ts";

export const handler = endpoint(
  {
    summary: "List lead statuses",
    description: "All statuses in their sort order, including inactive ones.",
    allow: "everyone",
    scope: "prospects:read",
    response: z.array(Status),
  },
  ({ context, caller }) => listStatuses(context, caller.companyId),
);
