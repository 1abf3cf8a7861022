/** GET /api/webhooks/{id}/deliveries: lists the deliveries of a webhook. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { listDeliveries } from "#shared/webhooks/deliver/log.ts";
import { DeliveryPage, DeliveryQuery } from "#shared/webhooks/delivery-schema.ts";

export const handler = endpoint(
  {
    summary: "List deliveries",
    description:
      "Newest first. `nextCursor` leads to the next page; it is null on the last one. With a filter that few deliveries pass, a page may be shorter than `limit`. Deliveries are kept for 30 days.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    query: DeliveryQuery,
    response: DeliveryPage,
  },
  ({ context, caller, path, query }) => listDeliveries(context, caller.companyId, path.id, query),
);
