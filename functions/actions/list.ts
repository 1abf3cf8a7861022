/** GET /api/prospects/{id}/actions: lists the actions for a prospect. An action is a webhook registration that users trigger by hand. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { listActions } from "#shared/webhooks/events/manual-trigger.ts";
import { Action } from "#shared/webhooks/subscriptions/schema.ts";

export const handler = endpoint(
  {
    summary: "List the actions for a prospect",
    description:
      "Each action is a registration with `triggerMode` `manual` whose filter the prospect meets. `label` is the registration's `manualTriggerButtonText`, or the name of the event if that is null.",
    allow: "everyone",
    scope: "prospects:read",
    path: IdPath,
    response: z.array(Action),
  },
  ({ context, caller, path }) => listActions(context, caller, path.id),
);
