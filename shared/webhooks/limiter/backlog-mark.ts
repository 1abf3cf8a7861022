/**
 * The mark of a throttled backlog (deliveries that found no free slot) in the limiter's row. This is a separate file, because the functions
 * that change webhooks need only the mark in their bundles.
 */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";

/** The write that marks the backlog. The marked row is due until the mark is removed, so the sweeper continues the drain each minute. */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
