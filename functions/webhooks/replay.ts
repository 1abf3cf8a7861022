/** POST /api/webhooks/{id}/replay: sends again what a webhook did not get. */

import { deliveryQueue } from "#shared/aws/queue.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { startReplay } from "#shared/webhooks/deliver/start-replay.ts";
import { Replayed, ReplayRange } from "#shared/webhooks/replay-schema.ts";

export const handler = endpoint(
  {
    summary: "Replay deliveries",
    description:
      "Sends the deliveries of events from `from` to `to` again that have failed: those that are exhausted, with a whole new plan of retries, and those that wait for another attempt, at once. With `deliveries` `all` also those that were delivered. Each goes out under the same id with the same body, oldest first, ten in a second beside what is new. `count` is how many there are now; what is delivered by its own retry meanwhile is not sent once more. What has not been tried yet, was cancelled, or belongs to a registration that is gone is left out. While a replay goes on, asking for the same again changes nothing and for another one is a conflict.",
    tag: "Webhooks",
    allow: "admin",
    path: IdPath,
    body: ReplayRange,
    status: 202,
    response: Replayed,
  },
  ({ context, caller, path, body }) => startReplay(context, deliveryQueue(), caller.companyId, path.id, body),
);
