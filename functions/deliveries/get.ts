/** GET /api/webhooks/{id}/deliveries/{deliveryId}: reads one delivery with its body and attempts. */
import { DeliveryPath } from "#shared/http/paths.ts";
import { streamEndpoint } from "#shared/http/streaming.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { deliveryIdIn } from "#shared/webhooks/delivery.ts";
import { DeliveryDetail } from "#shared/webhooks/delivery-schema.ts";

export const handler = streamEndpoint(
  {
    summary: "Get a delivery",
    description: "With the exact body, and the status, latency and first 4 KB of the answer of each attempt.",
    allow: "admin",
    scope: "webhooks:manage",
    path: DeliveryPath,
    response: DeliveryDetail,
  },
  ({ context, caller, path }) => readDelivery(context, caller.companyId, path.id, deliveryIdIn(path.deliveryId)),
);
