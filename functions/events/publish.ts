/**
 * Reads the table's stream and turns changes into events and events into deliveries, in the order of the stream. The function stops at the
 * first record that fails, so that no record is skipped.
 */

import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
