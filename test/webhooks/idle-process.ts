/** A sender that rests and has nothing else to wait for. */
import { eventContext } from "#shared/webhooks/context.ts";

await eventContext().wait(20);
console.log("rested");
