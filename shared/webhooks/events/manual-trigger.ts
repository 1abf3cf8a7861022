/** Buttons of manual registrations: which ones a caller may press for a prospect, and what a press sends. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { type DeliveryQueue, delaySecondsUntil } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { windowKeys } from "#shared/db/debounce-keys.ts";
import { absent, any, atMost, missing, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError, failedAt, notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { upcomingOf } from "#shared/prospects/agenda.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { readVisibleProspect } from "#shared/prospects/read.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import { userSummary } from "#shared/reference/users.ts";
import { Id } from "#shared/schema.ts";
import { deliveryItem, messageFor, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { deliveryId } from "#shared/webhooks/delivery-id.ts";
import type { Queued } from "#shared/webhooks/delivery-log-schema.ts";
import { manualData } from "#shared/webhooks/events/catalogue.ts";
import { ledgerPut } from "#shared/webhooks/expected-deliveries.ts";
import { newDelivery } from "#shared/webhooks/new-delivery.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter.ts";
import type { Action, StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { filterOf, readWebhooks } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Those whose filter the prospect meets, oldest first. A paused webhook has its buttons: it keeps what is for it. */
export async function listActions(context: ApiContext, caller: Caller, prospectId: number): Promise<Action[]> {
  const { prospect, registrations } = await readScene(context, caller, prospectId);
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
  context: ApiContext,
  { queue, timeScale }: Sending,
  caller: Caller,
  prospectId: number,
  registrationId: number,
): Promise<Queued> {
  const { prospect, registrations, dictionary } = await readScene(context, caller, prospectId);
  const registration = registrations.find(({ id }) => id === registrationId);
  if (registration === undefined) throw notFound("action");
  if (registration.triggerMode !== "manual") {
    throw new ApiError("conflict", "This registration is triggered by its events, and by no button.");
  }
  if (!isFor(registration, prospect))
    throw new ApiError("conflict", "The prospect does not meet this button's filter.");
  const { companyId, webhookId, event, delayMinutes } = registration;
  const now = context.clock.now();
  const eventId = `manual-${randomUUID()}`;
  const id = deliveryId(eventId, registrationId, iso(now));
  const triggeredBy = userSummary(dictionary.users.get(caller.userId));
  const dueMs = now + delayMs(delayMinutes, timeScale);
  const occasion = { id, companyId, webhookId, registrationId, event, eventId, createdAt: iso(now), dueMs };
  const delivery = newDelivery(
    { ...occasion, trigger: "manual", triggeredBy },
    JSON.stringify(manualData(event, prospect)),
  );
  const standing = await commitPress(context, delivery, prospectId, registrationId, now);
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
async function readScene(context: ApiContext, caller: Caller, prospectId: number): Promise<Scene> {
  const [stored, webhooks, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, prospectId),
    readWebhooks(context.table, caller.companyId),
    loadDictionary(context.table, caller.companyId),
  ]);
  const upcoming = await upcomingOf(context.table, stored, context.clock.now());
  const registrations = webhooks.flatMap((rows) => rows.registrations).sort((a, b) => a.id - b.id);
  return { prospect: presentProspect(stored, upcoming, dictionary), registrations, dictionary };
}

const isFor = (registration: StoredRegistration, prospect: Prospect): boolean =>
  matchesFilter(filterOf(registration), manualData(registration.event, prospect));

const StoredPress = z.object({ type: z.literal("press"), deliveryId: z.string(), pressedAt: z.int(), expiresAt: Id });

/** Press, delivery and its entry in the ledger are written together, while the registration exists. @returns the id of the delivery that an earlier press made, if one did. */
async function commitPress(
  context: ApiContext,
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
    await context.commit(writes, { deliveryId: id });
    return undefined;
  } catch (error) {
    if (failedAt(error, writes.indexOf(isRegistered)) !== undefined) throw notFound("action");
    const earlier = failedAt(error, 0);
    if (earlier === undefined) throw error;
    return StoredPress.parse(earlier.item).deliveryId;
  }
}
