/** GET /api/webhooks/{id}/deliveries/{deliveryId}: one delivery with its body and attempts. */
import { readDelivery } from "#shared/deliveries/log.ts";
import { DeliveryDetail } from "#shared/deliveries/log-schema.ts";
import { DeliveryPath } from "#shared/http/paths.ts";
import { streamEndpoint } from "#shared/http/stream-endpoint.ts";

export const handler = streamEndpoint(
  {
    summary: "Get a delivery",
    description:
      "With the exact body that is sent, and of each attempt the status, the latency and the first 4 KB of the answer.",
    tag: "Deliveries",
    allow: "admin",
    path: DeliveryPath,
    status: 200,
    response: DeliveryDetail,
  },
  ({ world, caller, path }) => readDelivery(world, caller.companyId, path.id, path.deliveryId),
);
