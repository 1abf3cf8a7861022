/** Buttons of manual registrations: which ones a caller may press for a prospect, and what a press sends. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { type Dictionary, loadDictionary } from "#shared/companies/dictionary.ts";
import { failedAt } from "#shared/db/errors.ts";
import { absent, any, atMost, missing, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Write } from "#shared/db/table.ts";
import { windowKeys } from "#shared/db/window-keys.ts";
import { deliveryId } from "#shared/deliveries/identity.ts";
import { ledgerPut } from "#shared/deliveries/ledger.ts";
import type { Queued } from "#shared/deliveries/log-schema.ts";
import { newDelivery } from "#shared/deliveries/new-delivery.ts";
import { delayMs } from "#shared/deliveries/plan.ts";
import { deliveryItem, messageFor, type StoredDelivery } from "#shared/deliveries/schema.ts";
import { manualData } from "#shared/events/catalogue.ts";
import { ApiError, notFound } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { readVisibleProspect } from "#shared/prospects/read.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { upcomingOf } from "#shared/prospects/upcoming.ts";
import { type DeliveryQueue, delaySecondsUntil } from "#shared/queue.ts";
import { Id } from "#shared/schema.ts";
import { userSummary } from "#shared/users/users.ts";
import { matchesFilter } from "#shared/webhooks/filter.ts";
import type { Action, StoredRegistration } from "#shared/webhooks/schema.ts";
import { filterOf, readWebhooks } from "#shared/webhooks/webhooks.ts";
import type { World } from "#shared/world.ts";

/** Those whose filter the prospect meets, oldest first. A paused webhook has its buttons: it keeps what is for it. */
export async function listActions(world: World, caller: Caller, prospectId: number): Promise<Action[]> {
  const { prospect, registrations } = await readScene(world, caller, prospectId);
  return registrations
    .filter(({ triggerMode }) => triggerMode === "manual")
    .filter((registration) => isFor(registration, prospect))
    .map(({ id, event, manualTriggerButtonText }) => ({
      registrationId: id,
      label: manualTriggerButtonText ?? event,
      event,
    }));
}

/** What a press needs of the deployment. */
export interface Sending {
  readonly queue: DeliveryQueue;
  /** Delays pass this many times faster. */
  readonly timeScale: number;
}

/**
 * One delivery with the whole plan of retries. Whoever presses again within ten seconds gets the same one. Should its
 * message be lost, the sweeper finds it. Throws not_found, and conflict where the button is none or not for this prospect.
 */
export async function pressAction(
  world: World,
  { queue, timeScale }: Sending,
  caller: Caller,
  prospectId: number,
  registrationId: number,
): Promise<Queued> {
  const { prospect, registrations, dictionary } = await readScene(world, caller, prospectId);
  const registration = registrations.find(({ id }) => id === registrationId);
  if (registration === undefined) throw notFound("action");
  if (registration.triggerMode !== "manual") {
    throw new ApiError("conflict", "This registration is triggered by its events, and by no button.");
  }
  if (!isFor(registration, prospect))
    throw new ApiError("conflict", "The prospect does not meet this button's filter.");
  const { companyId, webhookId, event, delayMinutes } = registration;
  const now = world.clock.now();
  const eventId = `manual-${randomUUID()}`;
  const id = deliveryId(eventId, registrationId, iso(now));
  const triggeredBy = userSummary(dictionary.users.get(caller.userId));
  const dueMs = now + delayMs(delayMinutes, timeScale);
  const occasion = { id, companyId, webhookId, registrationId, event, eventId, createdAt: iso(now), dueMs };
  const delivery = newDelivery(
    { ...occasion, trigger: "manual", triggeredBy },
    JSON.stringify(manualData(event, prospect)),
  );
  const standing = await commitPress(world, delivery, prospectId, registrationId, now);
  if (standing !== undefined) return { deliveryId: standing };
  const delaySeconds = delaySecondsUntil(dueMs, now);
  await queue.send([{ message: messageFor(delivery), delaySeconds }]).catch(() => undefined);
  return { deliveryId: id };
}

interface Scene {
  readonly prospect: Prospect;
  readonly registrations: readonly StoredRegistration[];
  readonly dictionary: Dictionary;
}

/** Throws not_found for a prospect that the caller may not see. */
async function readScene(world: World, caller: Caller, prospectId: number): Promise<Scene> {
  const [stored, webhooks, dictionary] = await Promise.all([
    readVisibleProspect(world, caller, prospectId),
    readWebhooks(world.table, caller.companyId),
    loadDictionary(world.table, caller.companyId),
  ]);
  const upcoming = await upcomingOf(world.table, stored, world.clock.now());
  const registrations = webhooks.flatMap((rows) => rows.registrations).sort((a, b) => a.id - b.id);
  return { prospect: presentProspect(stored, upcoming, dictionary), registrations, dictionary };
}

const isFor = (registration: StoredRegistration, prospect: Prospect): boolean =>
  matchesFilter(filterOf(registration), manualData(registration.event, prospect));

const StoredPress = z.object({ type: z.literal("press"), deliveryId: z.string(), pressedAt: z.int(), expiresAt: Id });

/** Press, delivery and its entry in the ledger are written together, while the registration exists. @returns the id of the delivery that an earlier press made, if one did. */
async function commitPress(
  world: World,
  delivery: StoredDelivery,
  recordId: number,
  registrationId: number,
  now: number,
): Promise<string | undefined> {
  const { id, companyId, webhookId, expiresAt } = delivery;
  const press: z.infer<typeof StoredPress> = { type: "press", deliveryId: id, pressedAt: now, expiresAt };
  const isFirst = any(missing("pk"), atMost("pressedAt", now - limits.doublePressMs));
  // A webhook that is deleted takes its registrations with it in the same transaction.
  const isRegistered = { check: keys.registration(companyId, webhookId, registrationId), when: present };
  const writes: Write[] = [
    { put: { ...windowKeys.press({ companyId, webhookId, registrationId, recordId }), ...press }, when: isFirst },
    { put: deliveryItem(delivery), when: absent },
    ledgerPut(delivery),
    isRegistered,
  ];
  try {
    await world.commit(writes, { deliveryId: id });
    return undefined;
  } catch (error) {
    if (failedAt(error, writes.indexOf(isRegistered)) !== undefined) throw notFound("action");
    const earlier = failedAt(error, 0);
    if (earlier === undefined) throw error;
    return StoredPress.parse(earlier.item).deliveryId;
  }
}
