/** DELETE /api/tags/{id}: deletes a tag, and removes it from all prospects. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteTag } from "#shared/reference/values.ts";

export const handler = command(
  {
    summary: "Delete a tag",
    description: "Removes the tag from the list and from every prospect. Its value may be used for a new tag.",
    allow: "admin",
    scope: "reference:write",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteTag(context, caller.companyId, path.id),
);
