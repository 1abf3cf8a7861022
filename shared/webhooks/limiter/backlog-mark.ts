/**
 * The mark of a throttled backlog in the limiter's row. This is a separate file, because the functions that change webhooks need only the
 * mark in their bundles.
 */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";

/** The write that marks the backlog. The mark is due until it is removed, so the sweeper starts a step of draining each minute. */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
