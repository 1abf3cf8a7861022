/** The context of a function that only uses the table and sends queue messages. Every other call fails. */
import type { EventContext } from "#shared/context.ts";

const never = () => Promise.reject(new Error("the tested function must not call this"));

export const quietContext = (
  table: EventContext["table"],
  clock: EventContext["clock"],
  send: EventContext["queue"]["send"],
): EventContext => ({
  table,
  clock,
  timeScale: 1,
  senders: 10,
  secrets: { open: never },
  wait: never,
  queue: { returnIn: never, send },
  post: never,
  savePoisonRecord: never,
});
