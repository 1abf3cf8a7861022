/**
 * Finds the deliveries of a webhook without a receiver, for a smoke test: the webhook sends to a path of the service, which answers POST
 * with 405.
 */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { type Api, assert, call } from "#shared/smoke/api.ts";
import { type Delivery, type Receiver, StatusChanged } from "#shared/smoke/story.ts";

const Page = z.object({ items: z.array(z.object({ id: z.string() })) });
const Detail = z.object({
  id: z.string(),
  createdAt: z.string(),
  body: z.string(),
  attempts: z.array(z.object({ status: z.nullable(z.number()), startedAt: z.string(), latencyMs: z.number() })),
});

const BETWEEN_MS = 500;

/** Milliseconds to wait for the deliveries. */
export function attemptsAt(base: string, waitMs: number): Receiver {
  return {
    url: `${base}/health`,
    proof: "the webhook is sent, and its receiver answers",
    async delivered({ id: webhookId }, count, api) {
      const path = `/api/webhooks/${webhookId}/deliveries`;
      for (const deadline = Date.now() + waitMs; ; await wait(BETWEEN_MS)) {
        const { items } = await call(api, ["GET", path], 200, Page);
        const all = await Promise.all(items.map(({ id }) => attemptOf(api, `${path}/${id}`)));
        const attempted = all.filter((one) => one !== undefined);
        if (attempted.length >= count) return attempted;
        assert(Date.now() < deadline, `only ${attempted.length} of ${count} webhooks were sent within ${waitMs} ms`);
      }
    },
  };
}

/** The first attempt with an answer. */
async function attemptOf(api: Api, path: string): Promise<Delivery | undefined> {
  const { id, createdAt, body, attempts } = await call(api, ["GET", path], 200, Detail);
  const answered = attempts.find(({ status }) => status !== null);
  if (answered === undefined) return undefined;
  const event = StatusChanged.parse(JSON.parse(body));
  return { id, event, delayMs: Date.parse(answered.startedAt) + answered.latencyMs - Date.parse(createdAt) };
}
