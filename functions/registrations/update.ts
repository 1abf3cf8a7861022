/** PATCH /api/webhooks/{id}/registrations/{registrationId}: another filter, delay, event or button. */
import { endpoint } from "#shared/http/endpoint.ts";
import { RegistrationPath } from "#shared/http/paths.ts";
import { Registration, RegistrationPatch } from "#shared/webhooks/subscriptions/schema.ts";
import { updateRegistration } from "#shared/webhooks/subscriptions/update.ts";

export const handler = endpoint(
  {
    summary: "Change a registration",
    description: "Only sent fields change. Deliveries that wait keep the time and the body that they have.",
    tag: "Webhooks",
    allow: "admin",
    path: RegistrationPath,
    body: RegistrationPatch,
    status: 200,
    response: Registration,
  },
  ({ context, caller, path, body }) =>
    updateRegistration(context, caller.companyId, path.id, path.registrationId, body),
);
