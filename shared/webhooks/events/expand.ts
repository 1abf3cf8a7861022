/**
 * Makes the deliveries of events that have many: oldest event first, a part at a time, at a bounded rate, by one function at a time for
 * each company. So a company's flood of events keeps one sender busy for a part of each second, and any message can go on with it.
 */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { ledgerKeys } from "#shared/db/expected-keys.ts";
import { any, atMost, type Change, type Condition, equals, missing, present } from "#shared/db/expression.ts";
import { fanOutKeys } from "#shared/db/fan-out-keys.ts";
import type { Item } from "#shared/db/item.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { type FanOutMessage, fanOutMessage } from "#shared/webhooks/delivery.ts";
import { tell } from "#shared/webhooks/events/emit.ts";
import { eventOfFanOut, StoredFanOut, wantingOf } from "#shared/webhooks/events/fan-out.ts";

/** Matches that are told together, between two notes of how far it is. */
export const PART = 100;
/** Matches that one message tells at most, fewer of an event with much data, and the time after which it begins no further part. */
export const PER_MESSAGE = 500;
export const PER_MESSAGE_BYTES = 16_000_000;
const BEGIN_WITHIN_MS = 1_000;
/** The next message comes after so long: the rate is what a message tells, in this time and its own. */
const PAUSE_SECONDS = 1;
/** A message may come a little sooner than it was asked to. */
const EARLY_MS = 100;
/** Longer than the function may run: after that, whoever began is taken for dead. */
const LEASE_MS = 20_000;

/** One for each company. */
export const StoredProgress = z.object({
  type: z.literal("fanOutProgress"),
  companyId: Id,
  owner: z.optional(z.string()),
  /** Nobody else before then: somebody is at work, or a message is on its way. */
  until: z.optional(Timestamp),
  /** The event, by its sort key, of which so many matches are told. */
  of: z.optional(z.string()),
  told: z._default(z.int(), 0),
  movedAt: z.optional(Timestamp),
});
type StoredProgress = z.infer<typeof StoredProgress>;

/** Whoever comes while another is at work, or where there is nothing to do, changes nothing. */
export async function expand(context: EventContext, { companyId }: FanOutMessage): Promise<void> {
  const lease = await take(context, companyId);
  if (lease === undefined) return;
  const giveBack = (change: Change) => changed(context.table, companyId, change, equals("owner", lease.owner));
  const free: Change = { remove: ["owner", "until"] };
  let isLeft: boolean;
  try {
    isLeft = await tellSome(context, lease);
  } catch (error) {
    // The message comes back soon, and must find the place free.
    await giveBack(free).catch(() => undefined);
    throw error;
  }
  const until = iso(context.clock.now() + PAUSE_SECONDS * 1_000 - EARLY_MS);
  if ((await giveBack(isLeft ? { set: { until }, remove: ["owner"] } : free)) === undefined) return;
  // Looked for after the place was given back: whoever came with an event before that was sent away.
  if (!isLeft && (await oldest(context.table, companyId)) === undefined) return;
  await context.queue.send([{ message: fanOutMessage(companyId), delaySeconds: isLeft ? PAUSE_SECONDS : 0 }]);
}

interface Lease {
  readonly companyId: number;
  readonly owner: string;
  readonly progress: StoredProgress;
}

/** Undefined: somebody else is at work, or has put off the next part. */
async function take(context: EventContext, companyId: number): Promise<Lease | undefined> {
  const owner = randomUUID();
  const now = context.clock.now();
  const change = { set: { type: "fanOutProgress", companyId, owner, until: iso(now + LEASE_MS) } };
  const item = await changed(context.table, companyId, change, any(missing("until"), atMost("until", iso(now))));
  return item === undefined ? undefined : { companyId, owner, progress: StoredProgress.parse(item) };
}

/** Gives whether more is left than one message tells. */
async function tellSome(context: EventContext, { companyId, owner, progress }: Lease): Promise<boolean> {
  const { table, clock } = context;
  const begun = clock.now();
  // Of all that the message tells: senders and receivers are to come to an end with it in about a second.
  let left = 1;
  let { of, told } = progress;
  for (let fanOut = await oldest(table, companyId); fanOut !== undefined; fanOut = await oldest(table, companyId)) {
    const { sk } = keyOf(fanOut);
    const event = eventOfFanOut(fanOut);
    const wanting = wantingOf(fanOut);
    const weight = Math.min(1, Math.max(1 / PER_MESSAGE, fanOut.bytes / PER_MESSAGE_BYTES));
    if (of !== sk) [of, told] = [sk, 0];
    while (told < wanting.length) {
      const room = Math.floor(left / weight);
      if (room < 1 || clock.now() - begun >= BEGIN_WITHIN_MS) return true;
      const part = wanting.slice(told, told + Math.min(PART, room));
      // The part names its entry in the ledger: cut off and told again, it is entered under the same name.
      await tell(
        context,
        part.map((registration) => ({ event, registration })),
        `${event.id}#${told}`,
      );
      left -= part.length * weight;
      told += part.length;
      const now = clock.now();
      const moved = { set: { of, told, movedAt: iso(now), until: iso(now + LEASE_MS) } };
      // Another has taken over, and goes on from what is noted.
      if ((await changed(table, companyId, moved, equals("owner", owner))) === undefined) return false;
    }
    await finish(table, fanOut, iso(clock.now()));
  }
  return false;
}

/** The oldest event of the company whose deliveries are still to be made. */
async function oldest(table: Table, companyId: number): Promise<StoredFanOut | undefined> {
  for await (const item of table.query({ ...fanOutKeys.waiting(companyId), pageItems: 1 })) {
    return StoredFanOut.parse(item);
  }
  return undefined;
}

const keyOf = ({ companyId, createdAt, eventId }: StoredFanOut): Key =>
  fanOutKeys.fanOut(companyId, createdAt, eventId);

/** Somebody who was taken for dead may have been here before. */
async function finish(table: Table, fanOut: StoredFanOut, doneAt: string): Promise<void> {
  const { companyId, createdAt, eventId } = fanOut;
  const entry = ledgerKeys.fanOut(companyId, createdAt.slice(0, 10), eventId);
  try {
    await table.transact([
      { remove: keyOf(fanOut), when: present },
      { update: entry, change: { set: { doneAt } } },
    ]);
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
  }
}

/** The row as it is then; undefined where the condition did not hold. */
async function changed(table: Table, companyId: number, change: Change, when: Condition): Promise<Item | undefined> {
  try {
    return await table.write({ update: fanOutKeys.progress(companyId), change, when });
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}
