/** PATCH /api/webhooks/{id}/registrations/{registrationId}: changes a registration. */
import { command } from "#shared/http/endpoint.ts";
import { RegistrationPath } from "#shared/http/paths.ts";
import { updateRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { Registration, RegistrationPatch } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = command(
  {
    summary: "Change a registration",
    description: "Only sent fields change. Waiting deliveries keep their time and their body.",
    allow: "admin",
    scope: "webhooks:manage",
    path: RegistrationPath,
    body: RegistrationPatch,
    response: Registration,
  },
  ({ context, caller, path, body }) =>
    updateRegistration(context, caller.companyId, path.id, path.registrationId, body),
);
