/** Every minute: deliveries that are due and have no message are queued again. */
import { SweepInput, sweep } from "#shared/deliveries/sweep.ts";
import { eventWorld } from "#shared/events/world.ts";
import { log } from "#shared/log.ts";

export const handler = async (input: unknown): Promise<{ queued: number }> => {
  const queued = await sweep(eventWorld(), SweepInput.parse(input));
  if (queued > 0) log.warn("queued again", { queued });
  return { queued };
};
