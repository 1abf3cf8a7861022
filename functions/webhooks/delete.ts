/** DELETE /api/webhooks/{id}: deletes a webhook. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = endpoint(
  {
    summary: "Delete a webhook",
    description: "Also deletes its registrations and cancels its waiting deliveries.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    status: 200,
    response: Deleted,
  },
  async ({ context, caller, path }) => {
    await deleteWebhook(context, caller.companyId, path.id);
    return { id: path.id };
  },
);
