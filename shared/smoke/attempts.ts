/** Reads the deliveries of the smoke test's webhook from the webhook's log. The receiver is the service's `POST /health/webhooks`. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { type Api, assert, call, SmokeError } from "#shared/smoke/api.ts";

export interface Webhook {
  readonly id: number;
  readonly secretKey: string;
}

export interface Delivery {
  readonly id: string;
  readonly delayMs: number;
  readonly event: z.output<typeof StatusChanged>;
}

const StatusChanged = z.object({
  id: z.string(),
  event: z.literal("prospect.status_changed"),
  createdAt: z.string(),
  data: z.object({
    prospect: z.object({ id: z.number() }),
    newStatus: z.object({ value: z.string() }),
    statusHistoryId: z.number(),
  }),
});

const Page = z.object({ items: z.array(z.object({ id: z.string() })), nextCursor: z.nullable(z.string()) });
const Detail = z.object({
  id: z.string(),
  createdAt: z.string(),
  body: z.string(),
  attempts: z.array(
    z.object({
      status: z.nullable(z.number()),
      error: z.nullable(z.string()),
      answer: z.string(),
      startedAt: z.string(),
      latencyMs: z.number(),
    }),
  ),
});
const Receipt = z.object({ signature: z.nullable(z.string()), sha256: z.string() });

/** Milliseconds between two reads of the log, so that the smoke test stays below the 20 requests a second of the preset `small`. */
const BETWEEN_MS = 500;

interface Expected {
  readonly webhook: Webhook;
  /** The prospects of the smoke test. Deliveries about other prospects do not count, because other users may have caused them. */
  readonly prospects: ReadonlySet<number>;
  readonly count: number;
  readonly waitMs: number;
}

/** Waits for the deliveries, and returns them. Throws after `waitMs`, with the reason of the last failure. */
export async function delivered(
  api: Api,
  { webhook, prospects, count, waitMs }: Expected,
): Promise<readonly Delivery[]> {
  const log = `/api/webhooks/${webhook.id}/deliveries`;
  const read = new Map<string, Delivery>();
  for (const deadline = Date.now() + waitMs; ; await wait(BETWEEN_MS)) {
    for (const id of await idsIn(api, log, "delivered")) {
      if (!read.has(id)) read.set(id, await received(api, `${log}/${id}`, webhook));
    }
    const deliveries = [...read.values()].filter(({ event }) => prospects.has(event.data.prospect.id));
    if (deliveries.length >= count) return deliveries;
    if (Date.now() < deadline) continue;
    const reason = await failureIn(api, log);
    throw new SmokeError(`only ${deliveries.length} of ${count} webhooks were delivered within ${waitMs} ms${reason}`);
  }
}

async function idsIn(api: Api, log: string, status: string, cursor?: string): Promise<string[]> {
  const from = cursor === undefined ? "" : `&cursor=${cursor}`;
  const { items, nextCursor } = await call(api, ["GET", `${log}?limit=500&status=${status}${from}`], 200, Page);
  const ids = items.map(({ id }) => id);
  return nextCursor === null ? ids : [...ids, ...(await idsIn(api, log, status, nextCursor))];
}

async function received(api: Api, path: string, webhook: Webhook): Promise<Delivery> {
  const { id, createdAt, body, attempts } = await call(api, ["GET", path], 200, Detail);
  const last = attempts.at(-1);
  assert(last !== undefined, "a delivered webhook has no attempt");
  const receipt = z.safeParse(Receipt, await new Response(last.answer).json().catch(() => undefined));
  assert(receipt.success, "the receiver does not answer as POST /health/webhooks does");
  const { signature, sha256 } = receipt.data;
  assert(signature !== null, "the receiver got no signature");
  assert(sha256 === createHash("sha256").update(body).digest("hex"), "another body has arrived");
  const expected = createHmac("sha256", webhook.secretKey).update(body, "utf8").digest();
  const given = Buffer.from(signature, "hex");
  const isValid = given.length === expected.length && timingSafeEqual(given, expected);
  assert(isValid, "the signature of a delivery is not valid");
  const event = StatusChanged.parse(JSON.parse(body));
  return { id, event, delayMs: Date.parse(last.startedAt) + last.latencyMs - Date.parse(createdAt) };
}

/** Returns why the last attempt of the newest waiting delivery failed. Empty if there was no attempt. */
async function failureIn(api: Api, log: string): Promise<string> {
  const [id] = await idsIn(api, log, "waiting");
  if (id === undefined) return "";
  const last = (await call(api, ["GET", `${log}/${id}`], 200, Detail)).attempts.at(-1);
  return last === undefined ? "" : `: ${last.error ?? `the receiver answered ${last.status}`}`;
}
