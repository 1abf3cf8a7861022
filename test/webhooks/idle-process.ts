/** Runs as a separate process that waits in the same way as a sender and does nothing else. */
import { eventContext } from "#shared/webhooks/context.ts";

await eventContext().wait(20);
console.log("waited");
