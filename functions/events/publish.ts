/** The publisher, which the table's stream invokes. After a transient fault, Lambda repeats the records from the failed one on. */
import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
