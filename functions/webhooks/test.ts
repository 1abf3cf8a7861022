/** POST /api/webhooks/{id}/test: sends a test delivery to a webhook. */
import { deliveryQueue } from "#shared/aws/sqs.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Queued } from "#shared/webhooks/delivery-schema.ts";
import { sendTestDelivery } from "#shared/webhooks/events/manual-trigger.ts";

export const handler = endpoint(
  {
    summary: "Send a test delivery",
    description:
      "Sends the event `webhook.test` to this webhook. It is signed, retried and logged like every delivery; its `registrationId` is null. A paused webhook gets it when it is resumed.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    status: 202,
    response: Queued,
  },
  ({ context, caller, path }) => sendTestDelivery(context, deliveryQueue(), caller, path.id),
);
