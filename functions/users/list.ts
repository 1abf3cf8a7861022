/** GET /api/users: lists the company's users. */
import * as z from "zod/mini";
import { streamItems } from "#shared/http/streaming.ts";
import { presentUser } from "#shared/reference/invite.ts";
import { User } from "#shared/reference/user.ts";
import { listUsers } from "#shared/reference/users.ts";

export const handler = streamItems(
  {
    summary: "List users",
    description: "All users of the company, including invited and disabled ones.",
    allow: "everyone",
    scope: "prospects:read",
    response: z.array(User),
  },
  async ({ context, caller }) => {
    const users = await listUsers(context, caller.companyId);
    return users.map((user) => presentUser(user, context.clock.now()));
  },
);
