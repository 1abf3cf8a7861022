/** POST /api/prospects: creates a prospect. */
import { command } from "#shared/http/endpoint.ts";
import { NewProspect } from "#shared/prospects/input.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { createProspect } from "#shared/prospects/write.ts";

export const handler = command(
  {
    summary: "Create a prospect",
    description:
      "Every field is optional. A status creates the first entry of the status history. If a sales user who sees only own prospects gives no assignee, this user becomes the assignee.",
    tag: "Prospects",
    allow: "everyone",
    body: NewProspect,
    status: 201,
    response: Prospect,
  },
  ({ context, caller, body }) => createProspect(context, caller, body),
);
