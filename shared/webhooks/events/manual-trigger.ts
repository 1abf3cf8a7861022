/** Makes the deliveries that a user triggers with an action. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import { any, atMost, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { debounceKeys } from "#shared/db/webhook-keys.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { nextAppointment } from "#shared/prospects/agenda.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { readVisibleProspect } from "#shared/prospects/read.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { userSummary } from "#shared/reference/users.ts";
import { Id } from "#shared/schema.ts";
import { manualData } from "#shared/webhooks/catalogue.ts";
import { deliveryId, newDelivery } from "#shared/webhooks/delivery.ts";
import type { Queued } from "#shared/webhooks/delivery-schema.ts";
import { askedDelivery } from "#shared/webhooks/messages.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter-match.ts";
import type { Action, StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { filterOf, readWebhooks } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Lists the actions whose filter the prospect meets, the oldest first, also those of a paused webhook. */
export async function listActions(context: ApiContext, caller: Caller, prospectId: number): Promise<Action[]> {
  const { prospect, registrations } = await readActions(context, caller, prospectId);
  return registrations
    .filter(({ triggerMode }) => triggerMode === "manual")
    .filter((registration) => isMet(registration, prospect))
    .map(({ id, event, manualTriggerButtonText }) => ({
      registrationId: id,
      label: manualTriggerButtonText ?? event,
      event,
    }));
}

export type TriggerContext = Pick<AppContext, "queue" | "timeScale">;

/** If the same action was triggered for the prospect within the last ten seconds, returns the earlier delivery. */
export async function triggerAction(
  context: ApiContext,
  { queue, timeScale }: TriggerContext,
  caller: Caller,
  prospectId: number,
  registrationId: number,
): Promise<Plan<Queued>> {
  const { prospect, registrations, dictionary } = await readActions(context, caller, prospectId);
  const registration = registrations.find(({ id }) => id === registrationId);
  if (registration === undefined) throw notFound("action");
  if (registration.triggerMode !== "manual") {
    throw new ApiError("conflict", "This registration is automatic: only events trigger it.");
  }
  if (!isMet(registration, prospect)) {
    throw new ApiError("conflict", "The prospect does not meet the filter of this action.");
  }
  const { companyId, webhookId, event, delayMinutes } = registration;
  const now = context.clock.now();
  const eventId = `manual-${randomUUID()}`;
  const id = deliveryId(eventId, registrationId, iso(now));
  const triggeredBy = userSummary(dictionary.users.get(caller.userId));
  const dueMs = now + delayMs(delayMinutes, timeScale);
  const about = { id, companyId, webhookId, registrationId, event, eventId, createdAt: iso(now), dueMs };
  const delivery = newDelivery(
    { ...about, trigger: "manual", triggeredBy },
    JSON.stringify(manualData(event, prospect)),
  );
  const { expiresAt } = delivery;
  const trigger: z.infer<typeof StoredTrigger> = { type: "trigger", deliveryId: id, triggeredAt: now, expiresAt };
  const isFirst = any(missing("pk"), atMost("triggeredAt", now - limits.doubleTriggerMs));
  const triggerKey = debounceKeys.manualTrigger({ companyId, webhookId, registrationId, recordId: prospectId });
  // It is enough to check the registration, because deleting a webhook deletes its registrations in the same transaction.
  const registrationKey = keys.registration(companyId, webhookId, registrationId);
  const plan = askedDelivery({ queue, clock: context.clock }, delivery, [
    { put: { ...triggerKey, ...trigger }, when: isFirst },
    { check: registrationKey, when: present, orThrow: () => notFound("action") },
  ]);
  return {
    ...plan,
    refused: ({ failed: [first, ...others] }) =>
      first?.index === 0 && others.length === 0 ? earlierTrigger(first.item) : undefined,
  };
}

const earlierTrigger = async (item: unknown): Promise<Plan<Queued>> =>
  unchanged({ deliveryId: StoredTrigger.parse(item).deliveryId });

async function readActions(context: ApiContext, caller: Caller, prospectId: number) {
  const [stored, webhooks, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, prospectId),
    readWebhooks(context.table, caller.companyId),
    loadDictionary(context.table, caller.companyId),
  ]);
  const upcoming = await nextAppointment(context.table, stored, context.clock.now());
  const registrations = webhooks.flatMap((rows) => rows.registrations).sort((a, b) => a.id - b.id);
  return { prospect: presentProspect(stored, upcoming, dictionary), registrations, dictionary };
}

const isMet = (registration: StoredRegistration, prospect: Prospect): boolean =>
  matchesFilter(filterOf(registration), manualData(registration.event, prospect));

/** The row that stores when an action was last triggered for a prospect. The service uses it to ignore a double click. */
export const StoredTrigger = z.object({
  type: z.literal("trigger"),
  deliveryId: z.string(),
  triggeredAt: z.int(),
  expiresAt: Id,
});
