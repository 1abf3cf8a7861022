/**
 * Defines the mark in a limiter's row which says that throttled deliveries are waiting. This file is separate from limiter.ts, because the
 * functions that change webhooks need only the mark in their bundles.
 */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";

/**
 * Returns the attributes of the mark. They put the limiter's row into the due index (an index of rows by due time). Until the mark is
 * removed, the sweeper (a function that runs every minute) finds the row there and continues to send the throttled deliveries.
 */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
