/** Runs a process that does nothing but wait as a sender does. */
import { eventContext } from "#shared/webhooks/context.ts";

await eventContext().wait(20);
console.log("waited");
