/** Runs as a separate process that only waits, as a sender does. */
import { eventContext } from "#shared/webhooks/context.ts";

await eventContext().wait(20);
console.log("waited");
