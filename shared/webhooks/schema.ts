/** Webhooks and their registrations: where events go, which ones, when and by whom they are triggered. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Id, named, Timestamp, text, WebUrl } from "#shared/schema.ts";
import { EventFilter } from "#shared/webhooks/filter.ts";

export const TriggerMode = z.enum(["automatic", "manual"]);

const registrationFields = {
  id: Id,
  event: z.string(),
  filter: z.nullable(EventFilter),
  delayMinutes: z.int(),
  triggerMode: TriggerMode,
  manualTriggerButtonText: z.nullable(z.string()),
};

export const Registration = named(
  "Registration",
  z.object(registrationFields),
  "A subscription of a webhook to one event.",
);
export type Registration = z.infer<typeof Registration>;

export const NewRegistration = named(
  "NewRegistration",
  z.object({
    event: text(limits.eventName, 1),
    filter: z._default(z.nullable(EventFilter), null),
    delayMinutes: z._default(z.int().check(z.minimum(0), z.maximum(limits.delayMinutesMax)), 0),
    triggerMode: z._default(TriggerMode, "automatic"),
    manualTriggerButtonText: z._default(z.nullable(text(limits.buttonText)), null),
  }),
);
export type NewRegistration = z.output<typeof NewRegistration>;

export const Webhook = named(
  "Webhook",
  z.object({
    id: Id,
    name: z.string(),
    url: z.string(),
    /** In full only in the answer that made it; elsewhere its last four characters. */
    secretKey: z.string(),
    status: z.enum(["active", "paused"]),
    companyId: Id,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    registrations: z.array(Registration),
  }),
  "A receiver of events. `secretKey` is shown in full only when it is made.",
);
export type Webhook = z.infer<typeof Webhook>;

export const NewWebhook = named(
  "NewWebhook",
  z.object({
    name: text(limits.name, 1),
    url: WebUrl,
    secretKey: z.optional(text(limits.secretKey, 1)),
    registrations: z._default(z.array(NewRegistration).check(z.maxLength(limits.registrationsPerWebhook)), []),
  }),
);
export type NewWebhook = z.output<typeof NewWebhook>;

export const StoredWebhook = z.object({
  type: z.literal("webhook"),
  id: Id,
  companyId: Id,
  name: z.string(),
  url: z.string(),
  secretKey: z.string(),
  status: z.enum(["active", "paused"]),
  registrationCount: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type StoredWebhook = z.infer<typeof StoredWebhook>;

export const StoredRegistration = z.object({
  ...registrationFields,
  type: z.literal("registration"),
  /** JSON text: kept exactly, whatever its keys and numbers. */
  filter: z.nullable(z.string()),
  companyId: Id,
  webhookId: Id,
  createdAt: Timestamp,
});
export type StoredRegistration = z.infer<typeof StoredRegistration>;
