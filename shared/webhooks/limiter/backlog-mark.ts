/**
 * The mark of a throttled backlog in the limiter's row. It is a separate file, because the functions that change webhooks need nothing else
 * of a limiter in their bundles.
 */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";

/** The write that marks the backlog. The mark is due at once, and stays due, so the sweeper starts a step of the drain each minute. */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
