/** POST /api/webhooks/{id}/test: sends a sample of an event to a webhook. */
import { deliveryQueue } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Queued } from "#shared/webhooks/delivery-schema.ts";
import { sendTestDelivery, TestRequest } from "#shared/webhooks/events/samples.ts";

export const handler = command(
  {
    summary: "Send a test delivery",
    description:
      "Sends a sample of the event to this webhook alone, whatever filters and delays its registrations have. The body has `test: true` and sample data. The sample is signed, retried and logged like every delivery. It belongs to the first registration that names the event; without one, its `registrationId` is null. A paused webhook gets it when it is resumed.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    body: TestRequest,
    status: 202,
    response: Queued,
  },
  ({ context, caller, path, body }) => sendTestDelivery(context, deliveryQueue(), caller, path.id, body.event),
);
