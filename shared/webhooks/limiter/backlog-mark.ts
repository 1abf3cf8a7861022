/**
 * The mark in the limiter's row which says that throttled deliveries wait. This is a separate file, because the functions that change
 * webhooks need only the mark in their bundles.
 */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";

/**
 * The attributes that set the mark. They put the row into the due index until the mark is removed. The sweeper finds the row there each
 * minute and continues the drain (the sending of these deliveries).
 */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
