/** The table's stream -> events -> deliveries. In order; stops at the first record that fails, so that none is passed over. */
import { publishStream } from "#shared/events/stream.ts";
import { eventWorld } from "#shared/events/world.ts";

export const handler = publishStream(eventWorld);
