/**
 * Reads the table's stream in order, makes events from the changes, and writes one webhook delivery for each subscription that matches an
 * event. The function stops at the first record that fails. The next invocation begins with this record, so no record is skipped.
 */

import { eventContext } from "#shared/webhooks/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";

export const handler = publishStream(eventContext);
