/**
 * Reads the table's stream in order, makes events, and writes one webhook delivery for each registration that an event matches. If an event
 * matches many registrations, it stores their list, and the deliverer writes the deliveries. After a transient fault, Lambda calls the
 * function again, beginning with the record that failed.
 */
import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
