/** POST /api/webhooks/{id}/test: tries out a webhook. */

import { deliveryQueue } from "#shared/aws/queue.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Queued } from "#shared/webhooks/delivery-log-schema.ts";
import { tryOut } from "#shared/webhooks/events/test-delivery.ts";

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
  ({ context, caller, path }) => tryOut(context, deliveryQueue(), caller, path.id),
);
