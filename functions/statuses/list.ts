/** GET /api/statuses: the company's lead statuses. */

import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { Status } from "#shared/statuses/schema.ts";
import { listStatuses } from "#shared/statuses/statuses.ts";

export const handler = endpoint(
  {
    summary: "List lead statuses",
    description: "In their order, those that are not active included.",
    tag: "Statuses",
    allow: "everyone",
    status: 200,
    response: z.array(Status),
  },
  ({ world, caller }) => listStatuses(world, caller.companyId),
);
