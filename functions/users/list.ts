/** GET /api/users: the company's users. */

import * as z from "zod/mini";
import { streamItems } from "#shared/http/stream-endpoint.ts";
import { User } from "#shared/users/schema.ts";
import { listUsers } from "#shared/users/users.ts";

export const handler = streamItems(
  {
    summary: "List users",
    description: "All users of the company, the disabled ones included.",
    tag: "Users",
    allow: "everyone",
    status: 200,
    response: z.array(User),
  },
  ({ world, caller }) => listUsers(world, caller.companyId),
);
