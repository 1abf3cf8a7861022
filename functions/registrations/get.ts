/** GET /api/webhooks/{id}/registrations/{registrationId}: reads one registration. */
import { endpoint } from "#shared/http/endpoint.ts";
import { RegistrationPath } from "#shared/http/paths.ts";
import { getRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { Registration } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = endpoint(
  {
    summary: "Get a registration",
    allow: "admin",
    scope: "webhooks:manage",
    path: RegistrationPath,
    response: Registration,
  },
  ({ context, caller, path }) => getRegistration(context, caller.companyId, path.id, path.registrationId),
);
