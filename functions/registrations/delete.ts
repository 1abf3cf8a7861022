/** DELETE /api/webhooks/{id}/registrations/{registrationId}: deletes a registration. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, RegistrationPath } from "#shared/http/paths.ts";
import { deleteRegistration } from "#shared/webhooks/subscriptions/registrations.ts";

export const handler = endpoint(
  {
    summary: "Delete a registration",
    description: "Also cancels its waiting deliveries.",
    tag: "Webhooks",
    allow: "admin",
    path: RegistrationPath,
    status: 200,
    response: Deleted,
  },
  async ({ context, caller, path }) => {
    await deleteRegistration(context, caller.companyId, path.id, path.registrationId);
    return { id: path.registrationId };
  },
);
