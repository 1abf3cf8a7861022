/** Replays a webhook: sends its deliveries of a time range again, from the oldest to the newest and at a limited rate. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { type DeliveryQueue, delaySecondsUntil, type Queued } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, EventContext } from "#shared/context.ts";
import { any, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { DELIVERY_SHARDS } from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import type { Table } from "#shared/db/table.ts";
import { replayKeys } from "#shared/db/webhook-keys.ts";
import { explain } from "#shared/documentation.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import { INSTANT_TEXT, InstantInput, LastInstantInput } from "#shared/instant.ts";
import * as limits from "#shared/limits.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";
import { dueAgain } from "#shared/webhooks/deliver/redeliver.ts";
import { idPrefix, readDeliveries, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { drainMessage, messageFor } from "#shared/webhooks/messages.ts";
import { updateIf } from "#shared/webhooks/settle.ts";
import { findWebhook, readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

const ReplayedDeliveries = z.enum(["undelivered", "all"]);

export const ReplayRange = named(
  "ReplayRange",
  z.object({
    from: InstantInput,
    to: z.optional(LastInstantInput),
    deliveries: z._default(ReplayedDeliveries, "undelivered"),
  }),
  "The time range, and which of its deliveries to send again.",
);
export type ReplayRange = z.output<typeof ReplayRange>;

/* @__PURE__ */ explain([ReplayRange], () => ({
  fields: {
    from: `From this time on. ${INSTANT_TEXT}`,
    to: "Up to this time, or to the end of this UTC day; now by default.",
    deliveries:
      "`undelivered`, the default: only failed deliveries, which are exhausted ones and ones that wait for a retry. `all`: also delivered ones.",
  },
  example: { from: "2026-06-01T15:00:00Z", to: "2026-06-01T18:30:00Z" },
}));

export const Replayed = named(
  "Replayed",
  z.object({ count: z.int() }),
  "The number of deliveries that are sent again.",
);
export type Replayed = z.infer<typeof Replayed>;

/* @__PURE__ */ explain([Replayed], () => ({
  fields: {
    count:
      "The number of deliveries that are sent again. 0 means that none of the range has failed; delivered ones count only with `deliveries: all`.",
  },
}));

/** The row of a webhook's latest replay. While the replay lasts, the row is in the due index. */
export const StoredReplay = z.object({
  type: z.literal("replay"),
  id: z.string(),
  companyId: Id,
  webhookId: Id,
  from: Timestamp,
  /** Null means the time at which the replay was started. */
  to: z.nullable(Timestamp),
  deliveries: ReplayedDeliveries,
  count: z.int(),
  /** The id of the last delivery that was read. */
  cursor: z.optional(z.string()),
  dueShard: z.optional(z.string()),
  dueAt: z.optional(Timestamp),
  createdAt: Timestamp,
  expiresAt: z.int(),
});
export type StoredReplay = z.infer<typeof StoredReplay>;

const Candidate = z.pick(StoredDelivery, {
  id: true,
  registrationId: true,
  state: true,
  attempt: true,
  planFrom: true,
  dueShard: true,
});
const candidateFields = ["type", ...Object.keys(Candidate.shape)];

/** The replay skips deliveries that will be sent without it, cancelled ones, and those of a deleted registration. */
function isTaken(
  { id, registrationId, state, attempt, planFrom, dueShard }: z.infer<typeof Candidate>,
  { deliveries }: Pick<StoredReplay, "deliveries">,
  registered: ReadonlySet<number>,
): boolean {
  if (registrationId !== null && !registered.has(registrationId)) return false;
  if (state === "exhausted") return true;
  if (state === "delivered") return deliveries === "all";
  return state === "waiting" && attempt > planFrom && dueShard === keys.dueShard(id);
}

/** Returns the range of sort keys that the replay has not read yet. Returns undefined if the time range is empty. */
function rangeOf({ from, to, createdAt, cursor }: Pick<StoredReplay, "from" | "to" | "createdAt" | "cursor">) {
  const last = to ?? createdAt;
  return from > last ? undefined : replayKeys.between(cursor, idPrefix(from), idPrefix(last));
}

/** Starts no replay if the count is 0. While a replay lasts, an equal request changes nothing, and a different one throws `conflict`. */
export async function startReplay(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  webhookId: number,
  range: ReplayRange,
): Promise<Plan<Replayed>> {
  const { registrations } = await readWebhook(context, companyId, webhookId);
  if (range.to !== undefined && range.from > range.to) {
    throw badRange("The time range ends before it begins.", "must not be later than `to`");
  }
  const key = replayKeys.replay(companyId, webhookId);
  const item = await context.table.get(key);
  const earlier = item && StoredReplay.parse(item);
  if (earlier?.dueAt !== undefined) return unchanged(sameAs(range, earlier));
  const now = context.clock.now();
  const replay: StoredReplay = {
    type: "replay",
    id: randomUUID(),
    companyId,
    webhookId,
    ...range,
    to: range.to ?? null,
    count: 0,
    dueShard: keys.dueShard(`replay-${webhookId}`),
    dueAt: iso(now),
    createdAt: iso(now),
    expiresAt: Math.floor((now + limits.deliveryKeptMs) / 1_000),
  };
  const count = await countTaken(context.table, replay, new Set(registrations.map(({ id }) => id)));
  if (count === 0) return unchanged({ count });
  const message = drainMessage({ companyId, webhookId }, "replay");
  return {
    writes: [
      { put: { ...key, ...replay, count }, when: any(missing("pk"), missing("dueAt")) },
      { check: keys.webhook(companyId, webhookId), when: present, orThrow: () => notFound("webhook") },
    ],
    answer: { count },
    after: () => queue.send([{ message, delaySeconds: 0 }]).catch(() => undefined),
  };
}

function sameAs(range: ReplayRange, { from, to, deliveries, count }: StoredReplay): Replayed {
  const isSame = range.from === from && (range.to ?? null) === to && range.deliveries === deliveries;
  if (!isSame) throw new ApiError("conflict", "Another replay of this webhook is still running.");
  return { count };
}

/** Returns the number of deliveries that the replay takes. Reads the partitions concurrently, because the request waits for the result. */
async function countTaken(table: Table, replay: StoredReplay, registered: ReadonlySet<number>): Promise<number> {
  const range = rangeOf(replay);
  if (range === undefined) return 0;
  const { companyId, webhookId } = replay;
  let read = 0;
  const counts = Array.from({ length: DELIVERY_SHARDS }, async (_, shard) => {
    const partition = keys.deliveryShard(companyId, webhookId, shard);
    let count = 0;
    for await (const item of table.query({ ...partition, ...range, fields: candidateFields })) {
      if (item.type !== "delivery") continue;
      if (++read > limits.replayedDeliveries) {
        const message = `must not have more than ${limits.replayedDeliveries} deliveries after it, up to \`to\``;
        throw badRange("The range is too long for one replay.", message);
      }
      if (isTaken(Candidate.parse(item), replay, registered)) count++;
    }
    return count;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

const badRange = (detail: string, message: string): ApiError =>
  new ApiError("validation_failed", detail, { faults: [{ pointer: "/from", code: "too_big", message }] });

/** Maximum number of deliveries that one step of the replay reads. It limits the duration of a step that skips most deliveries. */
const READ_PER_STEP = 500;
/** Number of rows that a Query returns at a time. It is small, so that a step reads only few rows more than it needs. */
const PAGE_ITEMS = 16;

interface Page {
  readonly count: number;
  /** Undefined at the end of the range. */
  readonly cursor: string | undefined;
}

/** Makes the next deliveries of the replay due again, at most `size`, and queues their messages. The n-th of them is due at `dueMs(n)`. */
export async function replayPage(
  context: EventContext,
  replay: StoredReplay,
  size: number,
  dueMs: (n: number) => number,
): Promise<Page> {
  const { table, clock, queue } = context;
  const { taken, cursor } = await nextPage(table, replay, size);
  const messages: Queued[] = [];
  const now = clock.now();
  for (const [n, delivery] of taken.entries()) {
    const { next, write } = dueAgain(delivery, iso(dueMs(n)), iso(now), replay.id);
    // A delivery that has changed since it was read is skipped.
    if ((await updateIf(context, write)) === undefined) continue;
    messages.push({ message: messageFor(next), delaySeconds: delaySecondsUntil(dueMs(n), now) });
  }
  await queue.send(messages);
  return { count: taken.length, cursor };
}

async function nextPage(table: Table, replay: StoredReplay, size: number) {
  const range = rangeOf(replay);
  const rows = await findWebhook(table, replay.companyId, replay.webhookId);
  const taken: StoredDelivery[] = [];
  if (range === undefined || rows === undefined) return { taken, cursor: undefined };
  const registered = new Set(rows.registrations.map(({ id }) => id));
  let read = 0;
  for await (const delivery of readDeliveries(table, replay, { ...range, pageItems: PAGE_ITEMS })) {
    if (delivery.replayId !== replay.id && isTaken(delivery, replay, registered)) taken.push(delivery);
    if (taken.length === size || ++read === READ_PER_STEP) return { taken, cursor: delivery.id };
  }
  return { taken, cursor: undefined };
}
