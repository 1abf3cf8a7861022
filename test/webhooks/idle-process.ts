/** A process whose only work is the wait of a sender. */
import { eventContext } from "#shared/webhooks/context.ts";

await eventContext().wait(20);
console.log("waited");
