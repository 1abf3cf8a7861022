/**
 * How many senders are busy with one webhook, and whether its receiver is called at all: one small row per webhook. Each
 * delivery in flight is an attribute of that row, with its sender's place and the end of its lease, so a sender that died gives
 * the place back.
 */

import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, any, atMost, below, type Condition, equals, exists, missing } from "#shared/db/expression.ts";
import type { Item } from "#shared/db/item.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const StoredGate = z.object({
  type: z.literal("gate"),
  companyId: Id,
  webhookId: Id,
  /** Places that are taken. */
  used: z._default(z.int(), 0),
  /** Attempts that failed since the last success. */
  fails: z._default(z.int(), 0),
  /** Whether the last exchange took longer than a quick receiver takes. */
  slow: z._default(z.boolean(), true),
  /** The breaker is open until then; after that, one delivery at a time finds out. */
  openUntil: z.optional(Timestamp),
  /** How often it has opened since the last success. */
  openings: z._default(z.int(), 0),
  /** How often in a row nothing could leave us: then `openUntil` ends a rest, and no breaker is open. */
  unsent: z._default(z.int(), 0),
  /** While deliveries wait at the gate: stands in the due index, so that the sweeper sees that they are looked after. */
  dueShard: z.optional(z.string()),
  dueAt: z.optional(Timestamp),
  /** One at a time looks after them: nobody else before then. */
  lookUntil: z.optional(Timestamp),
  /** Since then nothing was found waiting. */
  emptySince: z.optional(Timestamp),
});
export type StoredGate = z.infer<typeof StoredGate>;

/** That of a webhook of which nobody has sent anything yet. */
export const newGate = ({ companyId, id }: { companyId: number; id: number }): Item => ({
  type: "gate",
  companyId,
  webhookId: id,
});

/** Longer than the exchange and its record can take: after that, the sender is taken for dead. */
export const LEASE_MS = limits.exchangeMs + 8_000;

/** Of all senders: what one quick receiver may take, and one that is slow, failing or not known yet. */
const QUICK_SHARE = 0.8;
const SLOW_SHARE = 0.2;
export const slotsOf = (senders: number, slow: boolean): number =>
  Math.max(1, Math.floor(senders * (slow ? SLOW_SHARE : QUICK_SHARE)));

/** An answer within this time is quick. */
const QUICK_MS = 1_000;
/** A quick receiver's places that were taken since then are free again before long: its sender may have much else to do. */
const YOUNG_MS = 5_000;

/** So many failures in a row open the breaker. */
export const BREAKER_FAILURES = 5;
/** It stays open for 10 s, 20 s, 40 s … 5 min: a delivery that comes due meanwhile is late by that at most. */
const OPEN_MS = 10_000;
const OPEN_MAX_MS = 300_000;
export const openMs = (openings: number): number => Math.min(OPEN_MAX_MS, OPEN_MS * 2 ** Math.min(openings, 10));

export interface Place {
  readonly companyId: number;
  readonly webhookId: number;
  /** Of the deliveries that one sender takes along. */
  readonly ids: readonly string[];
}

/** `slot`: in, with what gives the place back. The others: not now. */
export type Entry =
  | { readonly kind: "in"; readonly slot: string }
  /** These of the deliveries are in other hands until then. */
  | { readonly kind: "taken"; readonly ids: readonly string[]; readonly until: string }
  /** All places are taken by exchanges that have only begun, of a receiver that is quick. */
  | { readonly kind: "soon" }
  | { readonly kind: "full" }
  | { readonly kind: "open"; readonly until: string };

export type Refusal = Exclude<Entry, { kind: "in" | "taken" }>;

/** Takes a place, for more than one delivery only where the receiver is quick. One write; a refusal costs the same. */
export async function enter(context: EventContext, { companyId, webhookId, ids }: Place): Promise<Entry> {
  const key = gateKeys.gate(companyId, webhookId);
  for (;;) {
    const now = context.clock.now();
    // Short: with ten deliveries in flight the row is still of one write unit.
    const slot = `${iso(now + LEASE_MS)} ${randomBytes(6).toString("base64url")}`;
    const own = Object.fromEntries(ids.map((id) => [id, slot]));
    const change = { set: { type: "gate", companyId, webhookId, ...own }, add: { used: 1 } };
    const refused = await attemptWrite(context, { update: key, change, when: mayEnter(ids, now, context.senders) });
    if (refused === undefined || slotsIn(refused).some((standing) => standing.slot === slot))
      return { kind: "in", slot };
    const expired = slotsIn(refused).filter(({ until }) => until <= iso(now));
    if (expired.length === 0) return holderOf(refused, ids) ?? refusal(refused, now);
    for (const standing of expired)
      await vacate(context, { companyId, webhookId, ids: standing.ids }, standing.slot, {});
  }
}

function mayEnter(ids: readonly string[], now: number, senders: number): Condition {
  const free = ids.map(missing);
  const some = all(equals("slow", false), below("used", slotsOf(senders, false)));
  if (ids.length > 1) return all(...free, missing("openUntil"), equals("fails", 0), some);
  const empty = any(missing("used"), equals("used", 0));
  const closed = any(missing("openUntil"), all(atMost("openUntil", iso(now)), empty));
  const few = any(missing("used"), below("used", slotsOf(senders, true)));
  return all(...free, closed, any(few, some));
}

/** Does one place do for all that a sender has? For a quick receiver, while its last exchange was a success. */
export const takesMany = ({ slow, fails, openUntil }: Pick<StoredGate, "slow" | "fails" | "openUntil">): boolean =>
  !slow && fails === 0 && openUntil === undefined;

interface Room {
  readonly free: number;
  readonly isForMany: boolean;
  readonly refusal: Refusal;
}

/**
 * How many senders the gate, as it was read, lets in; and what the others are told. Spares a write for each that would be
 * refused; whoever is let in by this has to `enter` still.
 */
export function room(item: Item, now: number, senders: number): Room {
  const gate = StoredGate.parse(item);
  const { openUntil, slow } = gate;
  const taken = slotsIn(item).filter(({ until }) => until > iso(now)).length;
  const places = openUntil === undefined ? slotsOf(senders, slow) : openUntil > iso(now) ? 0 : 1;
  return { free: Math.max(0, places - taken), isForMany: takesMany(gate), refusal: refusal(item, now) };
}

export interface Slot {
  readonly ids: string[];
  readonly slot: string;
  readonly until: string;
}

/** Places that are taken, as the row of the gate names them with their deliveries. */
export function slotsIn(gate: Item): Slot[] {
  const slots = new Map<string, Slot>();
  for (const [id, slot] of Object.entries(gate)) {
    if (!id.startsWith("dlv_") || typeof slot !== "string") continue;
    const standing = slots.get(slot) ?? { ids: [], slot, until: slot.split(" ")[0] ?? "" };
    standing.ids.push(id);
    slots.set(slot, standing);
  }
  return [...slots.values()];
}

function holderOf(gate: Item, ids: readonly string[]): Extract<Entry, { kind: "taken" }> | undefined {
  const own = slotsIn(gate).find((slot) => slot.ids.some((id) => ids.includes(id)));
  return own && { kind: "taken", ids: ids.filter((id) => own.ids.includes(id)), until: own.until };
}

function refusal(gate: Item, now: number): Refusal {
  const { openUntil, slow } = StoredGate.parse(gate);
  const slots = slotsIn(gate);
  if (openUntil !== undefined) {
    const probe = slots.map(({ until }) => until).toSorted();
    return { kind: "open", until: openUntil > iso(now) ? openUntil : (probe.at(-1) ?? iso(now)) };
  }
  const young = iso(now + LEASE_MS - YOUNG_MS);
  return { kind: !slow && slots.every(({ until }) => until >= young) ? "soon" : "full" };
}

/** What an exchange showed of the receiver. */
export interface Seen {
  readonly isSuccess: boolean;
  readonly latencyMs: number;
}

/**
 * Gives the place back with what the exchanges showed, in the order in which they ended. Failures in a row open the breaker, a
 * success closes it.
 */
export async function leave(context: EventContext, place: Place, slot: string, seen: readonly Seen[]): Promise<void> {
  const now = context.clock.now();
  const expiresAt = Math.floor((now + limits.deliveryKeptMs) / 1_000);
  const set = { slow: (seen.at(-1)?.latencyMs ?? 0) >= QUICK_MS, expiresAt };
  const lastSuccess = seen.findLastIndex(({ isSuccess }) => isSuccess);
  const failed = seen.length - 1 - lastSuccess;
  const told =
    lastSuccess === -1
      ? { set, add: { fails: failed } }
      : { set: { ...set, fails: failed }, remove: ["openUntil", "openings", "unsent"] };
  const item = await vacate(context, place, slot, told);
  if (item === undefined || failed === 0) return;
  const { fails, openings, openUntil, unsent } = StoredGate.parse(item);
  const { companyId, webhookId } = place;
  const key = gateKeys.gate(companyId, webhookId);
  const rested = { update: key, change: { remove: ["openUntil", "unsent"] }, when: exists("unsent") };
  if (unsent > 0) await attemptWrite(context, rested);
  if (fails < BREAKER_FAILURES || (unsent === 0 && (openUntil ?? "") > iso(now))) return;
  const until = iso(now + openMs(openings) / context.timeScale);
  const when = any(missing("openUntil"), atMost("openUntil", iso(now)));
  const change = { set: { openUntil: until }, add: { openings: 1 } };
  const refused = await attemptWrite(context, { update: key, change, when });
  if (refused === undefined) log.warn("breaker opened", { companyId, webhookId, fails, openings: openings + 1 });
}

/** Gives the place back and says nothing about the receiver. */
export async function stepBack(context: EventContext, place: Place, slot: string): Promise<void> {
  await vacate(context, place, slot, {});
}

/** Gives the gate as it then stands; `undefined` where the place was given back before. */
export async function vacate(
  context: EventContext,
  { companyId, webhookId, ids }: Place,
  slot: string,
  change: { set?: Record<string, unknown>; add?: Record<string, number>; remove?: string[] },
): Promise<Item | undefined> {
  const { set = {}, add = {}, remove = [] } = change;
  try {
    return await context.table.write({
      update: gateKeys.gate(companyId, webhookId),
      change: { set, add: { ...add, used: -1 }, remove: [...remove, ...ids] },
      // They came together and go together.
      when: equals(ids[0] ?? "", slot),
    });
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}

/** Gives what stands there where the condition does not hold. */
export async function attemptWrite(
  { table }: EventContext,
  write: Parameters<EventContext["table"]["write"]>[0],
): Promise<Item | undefined> {
  try {
    await table.write(write);
    return undefined;
  } catch (error) {
    if (error instanceof ConditionFailed) return error.failed[0]?.item ?? {};
    throw error;
  }
}
