/** POST /api/webhooks/{id}/test: tries out a webhook. */
import { Queued } from "#shared/deliveries/log-schema.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { deliveryQueue } from "#shared/queue.ts";
import { tryOut } from "#shared/webhooks/try-out.ts";

export const handler = endpoint(
  {
    summary: "Try out a webhook",
    description:
      "Sends it a `webhook.test`, signed, repeated and kept in the log like every delivery; its `registrationId` is null. A paused webhook gets it when it is resumed.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    status: 202,
    response: Queued,
  },
  ({ world, caller, path }) => tryOut(world, deliveryQueue(), caller, path.id),
);
