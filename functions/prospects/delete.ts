/** DELETE /api/prospects/{id}: deletes a prospect. The row stays in the table, but no request returns the prospect. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteProspect } from "#shared/prospects/write.ts";

export const handler = command(
  {
    summary: "Delete a prospect",
    description: "No later request returns the prospect. The service keeps its data.",
    allow: "everyone",
    scope: "prospects:delete",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteProspect(context, caller, path.id),
);
