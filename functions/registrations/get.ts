/** GET /api/webhooks/{id}/registrations/{registrationId}: one subscription. */
import { endpoint } from "#shared/http/endpoint.ts";
import { RegistrationPath } from "#shared/http/paths.ts";
import { Registration } from "#shared/webhooks/subscriptions/schema.ts";
import { readRegistration } from "#shared/webhooks/subscriptions/update.ts";
import { presentRegistration } from "#shared/webhooks/subscriptions/webhooks.ts";

export const handler = endpoint(
  {
    summary: "Get a registration",
    tag: "Webhooks",
    allow: "admin",
    path: RegistrationPath,
    status: 200,
    response: Registration,
  },
  async ({ context, caller, path }) =>
    presentRegistration(await readRegistration(context, caller.companyId, path.id, path.registrationId)),
);
