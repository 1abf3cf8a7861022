/** A sender that rests and has nothing else to wait for. */
import { eventWorld } from "#shared/events/world.ts";

await eventWorld().rest(20);
console.log("rested");
