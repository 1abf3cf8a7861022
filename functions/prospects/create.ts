/** POST /api/prospects: a new prospect. */
import { endpoint } from "#shared/http/endpoint.ts";
import { NewProspect, Prospect } from "#shared/prospects/schema.ts";
import { createProspect } from "#shared/prospects/write.ts";

export const handler = endpoint(
  {
    summary: "Create a prospect",
    description:
      "Every field is optional. A status given here begins the status history. A sales user who sees only own prospects becomes the assignee when none is given.",
    tag: "Prospects",
    allow: "everyone",
    body: NewProspect,
    status: 201,
    response: Prospect,
  },
  ({ context, caller, body }) => createProspect(context, caller, body),
);
