/** POST /api/prospects/{id}/actions/{registrationId}: triggers an action for a prospect, which makes a webhook delivery. */
import { deliveryQueue } from "#shared/aws/sqs.ts";
import { setting } from "#shared/config.ts";
import { command } from "#shared/http/endpoint.ts";
import { RegistrationPath } from "#shared/http/paths.ts";
import { Queued } from "#shared/webhooks/delivery-schema.ts";
import { triggerAction } from "#shared/webhooks/events/manual-trigger.ts";

export const handler = command(
  {
    summary: "Trigger an action",
    description:
      "Makes a delivery of the registration's event after the registration's delay. Its `data` holds the current prospect and null in every other field; `triggeredBy` is the caller. A paused webhook gets the delivery when it is resumed. A second request for the same registration and prospect within 10 s, by any user, answers with the first delivery. It is a conflict if the prospect does not meet the filter or the registration is not manual.",
    allow: "everyone",
    scope: "prospects:write",
    path: RegistrationPath,
    status: 202,
    response: Queued,
  },
  ({ context, caller, path }) => {
    const trigger = { queue: deliveryQueue(), timeScale: setting("TIME_SCALE") };
    return triggerAction(context, trigger, caller, path.id, path.registrationId);
  },
);
