/**
 * Reads the table's stream in order, makes events from the changes, and writes one webhook delivery for each subscription that matches an
 * event. A subscription is an automatic registration of a webhook. If an event matches many subscriptions, the function writes one row
 * with all matches (a fan-out) instead. functions/events/deliver.ts later creates the deliveries from this row. After a transient fault,
 * Lambda calls the function again, beginning with the record that failed.
 */

import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
