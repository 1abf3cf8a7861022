/** POST /api/webhooks/{id}/replay: sends the failed deliveries, or all deliveries, of a time range again. */
import { deliveryQueue } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Replayed, ReplayRange, startReplay } from "#shared/webhooks/deliver/replay.ts";

export const handler = command(
  {
    summary: "Replay deliveries",
    description:
      "Sends deliveries of events from `from` to `to` again. By default these are only the failed ones: exhausted deliveries with a new retry plan, and deliveries that wait for a retry immediately. With `deliveries` set to `all`, delivered ones are sent again too. A range whose `from` is later than its `to` is a 400. Each keeps its id and its body. They are sent oldest first, at ten a second in addition to new deliveries. `count` is the number of these deliveries at the time of the request; a delivery that succeeds by its own retry meanwhile is not sent again. Deliveries without an attempt, cancelled ones and those of deleted registrations are left out. During a replay, the same request again changes nothing, and a different one is a conflict.",
    allow: "admin",
    scope: "webhooks:manage",
    path: IdPath,
    body: ReplayRange,
    status: 202,
    response: Replayed,
  },
  ({ context, caller, path, body }) => startReplay(context, deliveryQueue(), caller.companyId, path.id, body),
);
