/** POST /api/prospects/{id}/actions/{registrationId}: presses a button. */

import { deliveryQueue } from "#shared/aws/queue.ts";
import { setting } from "#shared/config.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { RegistrationPath } from "#shared/http/paths.ts";
import { Queued } from "#shared/webhooks/delivery-log-schema.ts";
import { pressAction } from "#shared/webhooks/events/manual-trigger.ts";

export const handler = endpoint(
  {
    summary: "Press the button of an action",
    description:
      "Sends the registration's event with the prospect as it is now, null for everything else that the event tells, and the caller in `triggeredBy`; with the registration's delay, and kept while the webhook is paused. Whoever presses the same button for the same prospect again within 10 s gets the same delivery. A conflict where the prospect does not meet the filter and where the registration is not manual.",
    tag: "Actions",
    allow: "everyone",
    path: RegistrationPath,
    status: 202,
    response: Queued,
  },
  ({ context, caller, path }) => {
    const sending = { queue: deliveryQueue(), timeScale: setting("TIME_SCALE") };
    return pressAction(context, sending, caller, path.id, path.registrationId);
  },
);
