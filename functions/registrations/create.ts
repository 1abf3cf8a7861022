/** POST /api/webhooks/{id}/registrations: subscribes a webhook to an event. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { createRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { NewRegistration, Registration } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = command(
  {
    summary: "Create a registration",
    description:
      "Events whose data meets every criterion of `filter` are delivered after `delayMinutes`. A `manual` registration is delivered only when a user triggers its action. A webhook can have at most 50 registrations.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    body: NewRegistration,
    status: 201,
    response: Registration,
  },
  ({ context, caller, path, body }) => createRegistration(context, caller.companyId, path.id, body),
);
