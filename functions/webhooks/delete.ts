/** DELETE /api/webhooks/{id}: deletes a webhook. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = command(
  {
    summary: "Delete a webhook",
    description: "Also deletes its registrations and cancels its waiting deliveries.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteWebhook(context, caller.companyId, path.id),
);
