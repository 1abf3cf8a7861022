/**
 * Reads the table's stream in order, turns changes into events, and writes one delivery for each subscription that matches an event. The
 * function stops at the first record that fails, so that the next call retries this record and skips none.
 */

import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
