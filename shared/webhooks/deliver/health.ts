/** What attempts tell of a receiver: one that says it is gone, or fails for days, is paused and loses nothing. */
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, type Change, type Condition, equals, exists, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import type { Exchange } from "#shared/outbound/post.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** 2xx and nothing else. */
export const isSuccess = ({ status }: Exchange): boolean => status !== null && status >= 200 && status < 300;

/** For metrics: the class of the answer, or that there was none. */
export const resultOf = ({ status, error, isUnsent }: Exchange): string =>
  isUnsent === true
    ? "unsent"
    : status === null
      ? error?.startsWith("no answer within")
        ? "timeout"
        : "no answer"
      : `${Math.floor(status / 100)}xx`;

const GONE = 410;

/**
 * Of exchanges that ended at the same time: one that says the receiver is gone counts before any other, and a success before
 * failures. Writes only where the receiver's health changes. Repeated, it changes nothing more.
 */
export async function noteHealth(
  context: EventContext,
  webhook: StoredWebhook,
  exchanges: readonly Exchange[],
): Promise<void> {
  const exchange = exchanges.find(({ status }) => status === GONE) ?? exchanges.find(isSuccess) ?? exchanges[0];
  if (exchange === undefined) return;
  const now = context.clock.now();
  const { failingSince } = webhook;
  if (isSuccess(exchange)) {
    if (failingSince !== undefined)
      await change(context, webhook, { remove: ["failingSince"] }, exists("failingSince"));
    return;
  }
  const failingMs = failingSince === undefined ? 0 : now - Date.parse(failingSince);
  if (exchange.status === GONE || failingMs * context.timeScale >= limits.failingMs) {
    const { id, companyId } = webhook;
    const paused = { status: "paused", updatedAt: iso(now), dueShard: keys.pausedShard(), dueAt: iso(now) };
    await change(context, webhook, { set: paused }, equals("status", "active"));
    log.warn("webhook paused", { companyId, webhookId: id, status: exchange.status, failingMs });
  } else if (failingSince === undefined) {
    await change(context, webhook, { set: { failingSince: iso(now) } }, missing("failingSince"));
  }
}

async function change(
  { table }: EventContext,
  { companyId, id }: StoredWebhook,
  change: Change,
  when: Condition,
): Promise<void> {
  const write = { update: keys.webhook(companyId, id), change, when: all(exists("pk"), when) };
  await table.write(write).catch((error: unknown) => {
    if (!(error instanceof ConditionFailed)) throw error;
  });
}
