/** The mark of a gate at which deliveries wait: it stands in the due index, always overdue, and the sweeper asks for a look each minute. */
import { iso } from "#shared/clock.ts";
import { keys } from "#shared/db/keys.ts";

export const markedGate = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
