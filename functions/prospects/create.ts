/** POST /api/prospects: creates a prospect. With `matchBy`, returns an existing one with the same value in this field. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { NewProspect } from "#shared/prospects/input.ts";
import { FindOrMakeQuery, findOrMake, isFound } from "#shared/prospects/list/find-or-make.ts";
import { Prospect } from "#shared/prospects/schema.ts";

export const handler = command(
  {
    summary: "Create a prospect",
    description: `Every field is optional. A status creates the first entry of the status history. If a sales user who sees only own prospects gives no assignee, this user becomes the assignee. With \`matchBy\`, the service first looks for a prospect with the same key: 201 answers the new prospect, 200 the found one, and 409 names up to ${limits.conflictingIds} prospects in \`ids\` if several have the key. Of concurrent requests with \`matchBy\` and the same key, by users who see the same prospects, one creates the prospect, and the others find it. A creation with a \`clientRecordId\` that the user has used before is 409, with \`existingId\` if the user sees the prospect.`,
    allow: "everyone",
    scope: "prospects:write",
    query: FindOrMakeQuery,
    body: NewProspect,
    status: 201,
    response: Prospect,
    ok: { response: Prospect, applies: isFound },
  },
  ({ context, caller, query, body }) => findOrMake(context, caller, query, body),
);
