/** POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver: sends a delivery again. */
import { deliveryQueue } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { DeliveryPath } from "#shared/http/paths.ts";
import { redeliver } from "#shared/webhooks/deliver/redeliver.ts";
import { deliveryIdIn } from "#shared/webhooks/delivery.ts";
import { Queued } from "#shared/webhooks/delivery-schema.ts";

export const handler = command(
  {
    summary: "Deliver again",
    description:
      "Sends the same body under the same id, whatever the state of the delivery. A delivery whose attempts have ended gets a new retry plan. A waiting delivery is sent at once, and keeps its retry plan.",
    allow: "admin",
    scope: "webhooks:manage",
    path: DeliveryPath,
    status: 202,
    response: Queued,
  },
  ({ context, caller, path }) =>
    redeliver(context, deliveryQueue(), caller.companyId, path.id, deliveryIdIn(path.deliveryId)),
);
