/** POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver: sends a delivery again. */
import { Queued } from "#shared/deliveries/log-schema.ts";
import { redeliver } from "#shared/deliveries/redeliver.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { DeliveryPath } from "#shared/http/paths.ts";
import { deliveryQueue } from "#shared/queue.ts";

export const handler = endpoint(
  {
    summary: "Deliver again",
    description:
      "The same body under the same id, whatever became of it before, with the whole plan of retries. One that waits is sent at once.",
    tag: "Deliveries",
    allow: "admin",
    path: DeliveryPath,
    status: 202,
    response: Queued,
  },
  ({ world, caller, path }) => redeliver(world, deliveryQueue(), caller.companyId, path.id, path.deliveryId),
);
