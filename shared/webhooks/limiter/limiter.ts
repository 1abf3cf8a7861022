/**
 * The concurrency limiter of a webhook, stored in one row. A sender may send only while it holds a slot. After successive failures, the
 * circuit breaker stops all senders for a while. Slots are leases, so that a slot of a killed sender becomes free.
 */
import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import {
  all,
  any,
  atMost,
  below,
  type Change,
  type Condition,
  equals,
  exists,
  type Item,
  missing,
} from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { failedAt } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { updateIf } from "#shared/webhooks/settle.ts";

/** Duration of a slot's lease. It is longer than a request: `limits.exchangeMs`, and 8 s for the work before and the writes after it. */
export const LEASE_MS = limits.exchangeMs + 8_000;

export const StoredLimiter = z.object({
  type: z.literal("limiter"),
  companyId: Id,
  webhookId: Id,
  used: z._default(z.int(), 0),
  /** Number of exchanges that have failed since the last success. */
  fails: z._default(z.int(), 0),
  /** True if the last exchange took at least `QUICK_MS`, or there was none. */
  slow: z._default(z.boolean(), true),
  /** The circuit breaker is open until this time. Afterwards, senders send one delivery at a time to test the receiver. */
  openUntil: z.optional(Timestamp),
  /** Number of times that the circuit breaker has opened since the last success. */
  openings: z._default(z.int(), 0),
  /** Number of successive times that requests could not be sent. Above 0, `openUntil` is the end of a wait, not of an open breaker. */
  unsent: z._default(z.int(), 0),
  /** Present while throttled deliveries are waiting ("the mark"). It puts the row into the due index. */
  dueShard: z.optional(z.string()),
  dueAt: z.optional(Timestamp),
  /** During a step of the drain (drain.ts), the end of the step's lease. Between two steps, the time of the next step. */
  lookUntil: z.optional(Timestamp),
  emptySince: z.optional(Timestamp),
});
export type StoredLimiter = z.infer<typeof StoredLimiter>;

export interface Slot {
  readonly ids: readonly string[];
  readonly slot: string;
  readonly until: string;
}

/**
 * A limiter with its slots. For each delivery in a slot, the row has an attribute. Its name is the delivery's id. Its value is the slot's
 * name, which begins with the time at which the lease of the slot ends.
 */
export interface Limiter extends StoredLimiter {
  readonly slots: readonly Slot[];
}

type Named = Pick<StoredLimiter, "companyId" | "webhookId">;

/** Returns the limiter that the row stores, or a new limiter if there is no row yet. */
export function limiterOf({ companyId, webhookId }: Named, row: Item = {}): Limiter {
  const own = Object.entries(row).flatMap(([id, slot]) =>
    id.startsWith("dlv_") && typeof slot === "string" ? [{ id, slot }] : [],
  );
  const slots = [...Map.groupBy(own, ({ slot }) => slot)].map(([slot, held]) => ({
    ids: held.map(({ id }) => id),
    slot,
    until: at(slot.split(" "), 0),
  }));
  return { ...StoredLimiter.parse({ type: "limiter", companyId, webhookId, ...row }), slots };
}

export const readLimiter = async ({ table }: { readonly table: Reads }, named: Named): Promise<Limiter> =>
  limiterOf(named, await table.get(limiterKeys.limiter(named.companyId, named.webhookId)));

/** Maximum share of all senders for one webhook. A webhook that is slow, failing or not yet known gets only `SLOW_SHARE`. */
const QUICK_SHARE = 0.8;
const SLOW_SHARE = 0.2;
/** Maximum share of a webhook's slots for events of single records of bulk jobs, so that other deliveries find a free slot. */
const BULK_SHARE = 0.5;
export const slotLimit = (senders: number, slow: boolean, isBulk?: true): number =>
  Math.max(1, Math.floor(senders * (slow ? SLOW_SHARE : QUICK_SHARE) * (isBulk ? BULK_SHARE : 1)));

const QUICK_MS = 1_000;
/** If all slots were taken less than this many milliseconds ago, a quick receiver will probably free one soon. */
const YOUNG_MS = 5_000;

export const BREAKER_FAILURES = 5;
/** The circuit breaker stays open for 10 s, then 20 s, 40 s and so on, up to 5 min. It therefore delays a due delivery by at most 5 min. */
const OPEN_MS = 10_000;
const OPEN_MAX_MS = 300_000;
const openMs = (openings: number): number => Math.min(OPEN_MAX_MS, OPEN_MS * 2 ** Math.min(openings, 10));

export interface SlotClaim {
  readonly companyId: number;
  readonly webhookId: number;
  readonly isBulk?: true | undefined;
  readonly ids: readonly string[];
}

export type Acquisition =
  | { readonly kind: "acquired"; readonly slot: string }
  /** The sender of the deliveries `ids` holds their slot until `until` at the latest. */
  | { readonly kind: "inFlight"; readonly ids: readonly string[]; readonly until: string }
  | { readonly kind: "soon" }
  | { readonly kind: "full" }
  /** Nothing is sent until `until`: the circuit breaker is open, requests could not be sent, or one delivery tests the receiver. */
  | { readonly kind: "open"; readonly until: string };

export type Refusal = Exclude<Acquisition, { kind: "acquired" | "inFlight" }>;

/** Takes a slot, and frees slots whose lease has expired. A claim may contain several deliveries only while the receiver is quick. */
export async function acquireSlot(context: EventContext, claim: SlotClaim): Promise<Acquisition> {
  const { companyId, webhookId, isBulk, ids } = claim;
  for (;;) {
    const now = context.clock.now();
    const slot = `${iso(now + LEASE_MS)} ${randomBytes(6).toString("base64url")}`;
    const own = Object.fromEntries(ids.map((id) => [id, slot]));
    const change = { set: { type: "limiter", companyId, webhookId, ...own }, add: { used: 1 } };
    const update = {
      update: limiterKeys.limiter(companyId, webhookId),
      change,
      when: isFree(ids, now, (slow) => slotLimit(context.senders, slow, isBulk)),
    };
    const refusing = await refusingRow(context, update);
    if (refusing === undefined) return { kind: "acquired", slot };
    const limiter = limiterOf(claim, refusing);
    // The client of DynamoDB repeats a write whose answer was lost. The condition then fails, although the first write took this slot.
    if (limiter.slots.some((held) => held.slot === slot)) return { kind: "acquired", slot };
    const expired = limiter.slots.filter(({ until }) => until <= iso(now));
    if (expired.length === 0) return inFlight(limiter, ids) ?? refusalOf(limiter, now);
    for (const dead of expired) await freeSlot(context, { companyId, webhookId, ids: dead.ids }, dead.slot, {});
  }
}

function isFree(ids: readonly string[], now: number, limitIf: (slow: boolean) => number): Condition {
  const areIdle = ids.map(missing);
  const hasQuickSlot = all(equals("slow", false), below("used", limitIf(false)));
  if (ids.length > 1) return all(...areIdle, missing("openUntil"), equals("fails", 0), hasQuickSlot);
  const isUnused = any(missing("used"), equals("used", 0));
  const isClosed = any(missing("openUntil"), all(atMost("openUntil", iso(now)), isUnused));
  const hasSlowSlot = any(missing("used"), below("used", limitIf(true)));
  return all(...areIdle, isClosed, any(hasSlowSlot, hasQuickSlot));
}

/** True if a slot may have several deliveries: the receiver is quick, and its last exchange has succeeded. */
export const takesBatches = ({ slow, fails, openUntil }: StoredLimiter): boolean =>
  !slow && fails === 0 && openUntil === undefined;

/** Estimates the number of free slots. The row may have changed, so only `acquireSlot` decides. */
export function freeSlots({ openUntil, slow, slots }: Limiter, now: number, senders: number, isBulk?: true): number {
  const used = slots.filter(({ until }) => until > iso(now)).length;
  const most = openUntil === undefined ? slotLimit(senders, slow, isBulk) : openUntil > iso(now) ? 0 : 1;
  return Math.max(0, most - used);
}

function inFlight({ slots }: Limiter, ids: readonly string[]): Acquisition | undefined {
  const other = slots.find((slot) => slot.ids.some((id) => ids.includes(id)));
  return other && { kind: "inFlight", ids: ids.filter((id) => other.ids.includes(id)), until: other.until };
}

export function refusalOf({ openUntil, slow, slots }: Limiter, now: number): Refusal {
  if (openUntil !== undefined) {
    const probes = slots.map(({ until }) => until).toSorted();
    return { kind: "open", until: openUntil > iso(now) ? openUntil : (probes.at(-1) ?? iso(now)) };
  }
  const young = iso(now + LEASE_MS - YOUNG_MS);
  return { kind: !slow && slots.every(({ until }) => until >= young) ? "soon" : "full" };
}

export interface Observation {
  readonly isSuccess: boolean;
  readonly latencyMs: number;
}

/** Frees the slot, and evaluates the exchanges in the order in which they ended. There must be at least one exchange. */
export async function releaseSlot(
  context: EventContext,
  claim: SlotClaim,
  slot: string,
  observed: readonly Observation[],
): Promise<void> {
  const now = context.clock.now();
  const expiresAt = Math.floor((now + limits.deliveryKeptMs) / 1_000);
  const set = { slow: at(observed, observed.length - 1).latencyMs >= QUICK_MS, expiresAt };
  const lastSuccess = observed.findLastIndex(({ isSuccess }) => isSuccess);
  const failed = observed.length - 1 - lastSuccess;
  const noted =
    lastSuccess === -1
      ? { set, add: { fails: failed } }
      : { set: { ...set, fails: failed }, remove: ["openUntil", "openings", "unsent"] };
  const limiter = await freeSlot(context, claim, slot, noted);
  if (limiter === undefined || failed === 0) return;
  const { companyId, webhookId, fails, openings, openUntil, unsent } = limiter;
  const key = limiterKeys.limiter(companyId, webhookId);
  if (unsent > 0) {
    await updateIf(context, { update: key, change: { remove: ["openUntil", "unsent"] }, when: exists("unsent") });
  }
  const isOpen = openUntil !== undefined && openUntil > iso(now);
  if (fails < BREAKER_FAILURES || (unsent === 0 && isOpen)) return;
  const change = { set: { openUntil: openEnd(context, now, openings) }, add: { openings: 1 } };
  if ((await updateIf(context, { update: key, change, when: isNotOpen(now) })) !== undefined) {
    log.warn("breaker opened", { companyId, webhookId, fails, openings: openings + 1 });
  }
}

/** Frees the slot, and stops requests to the webhook until the returned time. Each repetition doubles the wait. */
export async function releaseUnsent(context: EventContext, claim: SlotClaim, slot: string): Promise<string> {
  const now = context.clock.now();
  const { companyId, webhookId } = claim;
  const { unsent, openUntil } = (await freeSlot(context, claim, slot, {})) ?? limiterOf(claim);
  if (openUntil !== undefined && openUntil > iso(now)) return openUntil;
  const until = openEnd(context, now, unsent);
  const change = { set: { openUntil: until }, add: { unsent: 1 } };
  await updateIf(context, { update: limiterKeys.limiter(companyId, webhookId), change, when: isNotOpen(now) });
  return until;
}

const openEnd = ({ timeScale }: EventContext, now: number, openings: number): string =>
  iso(now + openMs(openings) / timeScale);

const isNotOpen = (now: number): Condition => any(missing("openUntil"), atMost("openUntil", iso(now)));

/** Frees the slot and makes the change in one write. Returns the limiter after the write, or undefined if the slot was already free. */
export async function freeSlot(
  context: EventContext,
  claim: SlotClaim,
  slot: string,
  { set = {}, add, remove = [] }: Change,
): Promise<Limiter | undefined> {
  const { companyId, webhookId, ids } = claim;
  const row = await updateIf(context, {
    update: limiterKeys.limiter(companyId, webhookId),
    change: { set, add: { ...add, used: -1 }, remove: [...remove, ...ids] },
    // It is enough to check one attribute, because all attributes of a slot are written and removed together.
    when: equals(at(ids, 0), slot),
  });
  return row && limiterOf(claim, row);
}

/** Returns undefined if the write succeeds, and the current row if its condition fails. */
async function refusingRow(
  { table }: EventContext,
  write: Parameters<EventContext["table"]["write"]>[0],
): Promise<Item | undefined> {
  try {
    await table.write(write);
    return undefined;
  } catch (error) {
    const failed = failedAt(error, 0);
    if (failed === undefined) throw error;
    return failed.item ?? {};
  }
}

/** Milliseconds until the next step of a drain if all slots of the webhook are in use. */
export const FULL_MS = 2_000;

/** Says that throttled deliveries are waiting, and puts the limiter's row into the due index, where the sweeper finds it. */
export const backlogMark = (companyId: number, webhookId: number, nowMs: number) => ({
  type: "limiter" as const,
  companyId,
  webhookId,
  dueShard: keys.dueShard(`limiter-${webhookId}`),
  dueAt: iso(nowMs),
});
