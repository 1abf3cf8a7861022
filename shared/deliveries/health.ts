/** What attempts tell of a receiver: one that says it is gone, or fails for days, is paused and loses nothing. */
import { iso } from "#shared/clock.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { all, type Change, type Condition, equals, exists, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Exchange } from "#shared/deliveries/exchange.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { limits } from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import type { StoredWebhook } from "#shared/webhooks/schema.ts";

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
  world: EventWorld,
  webhook: StoredWebhook,
  exchanges: readonly Exchange[],
): Promise<void> {
  const exchange = exchanges.find(({ status }) => status === GONE) ?? exchanges.find(isSuccess) ?? exchanges[0];
  if (exchange === undefined) return;
  const now = world.clock.now();
  const { failingSince } = webhook;
  if (isSuccess(exchange)) {
    if (failingSince !== undefined) await change(world, webhook, { remove: ["failingSince"] }, exists("failingSince"));
    return;
  }
  const failingMs = failingSince === undefined ? 0 : now - Date.parse(failingSince);
  if (exchange.status === GONE || failingMs * world.timeScale >= limits.failingMs) {
    const { id, companyId } = webhook;
    const paused = { status: "paused", updatedAt: iso(now), dueShard: keys.pausedShard(), dueAt: iso(now) };
    await change(world, webhook, { set: paused }, equals("status", "active"));
    log.warn("webhook paused", { companyId, webhookId: id, status: exchange.status, failingMs });
  } else if (failingSince === undefined) {
    await change(world, webhook, { set: { failingSince: iso(now) } }, missing("failingSince"));
  }
}

async function change(
  { table }: EventWorld,
  { companyId, id }: StoredWebhook,
  change: Change,
  when: Condition,
): Promise<void> {
  const write = { update: keys.webhook(companyId, id), change, when: all(exists("pk"), when) };
  await table.write(write).catch((error: unknown) => {
    if (!(error instanceof ConditionFailed)) throw error;
  });
}
