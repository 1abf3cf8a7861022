/** DELETE /api/webhooks/{id}: no further deliveries are made. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = endpoint(
  {
    summary: "Delete a webhook",
    description: "With its registrations. Deliveries that wait are cancelled.",
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
