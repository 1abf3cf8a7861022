/** GET /api/webhooks/{id}/registrations: lists the registrations of a webhook. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { listRegistrations } from "#shared/webhooks/subscriptions/registrations.ts";
import { Registration } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = endpoint(
  {
    summary: "List registrations",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    response: z.array(Registration),
  },
  ({ context, caller, path }) => listRegistrations(context, caller.companyId, path.id),
);
