/** The table's stream -> events -> deliveries. In order; stops at the first record that fails, so that none is passed over. */

import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
