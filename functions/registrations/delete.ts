/** DELETE /api/webhooks/{id}/registrations/{registrationId}: deletes a registration. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, RegistrationPath } from "#shared/http/paths.ts";
import { deleteRegistration } from "#shared/webhooks/subscriptions/registrations.ts";

export const handler = command(
  {
    summary: "Delete a registration",
    description: "Also cancels its waiting deliveries.",
    allow: "admin",
    scope: "webhooks:manage",
    path: RegistrationPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteRegistration(context, caller.companyId, path.id, path.registrationId),
);
