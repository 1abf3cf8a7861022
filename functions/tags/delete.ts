/** DELETE /api/tags/{id}: takes a tag out of use. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteTag } from "#shared/reference/tags.ts";

export const handler = endpoint(
  {
    summary: "Delete a tag",
    description: "It is gone at once from the list and from every prospect that had it. Its value can be used again.",
    tag: "Tags",
    allow: "admin",
    path: IdPath,
    status: 200,
    response: Deleted,
  },
  async ({ context, caller, path }) => {
    await deleteTag(context, caller.companyId, path.id);
    return { id: path.id };
  },
);
