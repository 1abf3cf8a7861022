/**
 * The mark in the limiter's row which says that throttled deliveries wait. This is a separate file, because the functions that change
 * webhooks need only the mark in their bundles.
 */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";

/** The write that sets the mark. The row is then due until the mark is removed, so the sweeper continues the drain each minute. */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "gate" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`gate-${webhookId}`),
  dueAt: iso(nowMs),
});
