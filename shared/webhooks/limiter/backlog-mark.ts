/** The mark of a throttled backlog on its limiter's row. It has a file of its own because the bundles of webhooks need nothing else of a limiter. */
import { iso } from "#shared/clock.ts";
import { keys } from "#shared/db/keys.ts";

/** The due time of the mark is always past, so the sweeper starts a step of the drain each minute. */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
