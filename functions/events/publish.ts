/** Publishes the table's stream: changes -> events -> deliveries, in order. It stops at the first record that fails, so none is skipped. */

import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
