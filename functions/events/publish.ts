/** The publisher, which the table's stream invokes. After a transient fault, Lambda invokes it again from the failed record on. */
import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
