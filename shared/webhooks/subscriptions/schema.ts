/** Webhooks and their registrations: where events go, which ones, when and by whom they are triggered. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Bytes, Id, named, Timestamp, text, WebUrl } from "#shared/schema.ts";
import { EventFilter } from "#shared/webhooks/subscriptions/filter.ts";
import { Secret } from "#shared/webhooks/subscriptions/secret.ts";

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

const input = {
  event: text(limits.eventName, 1),
  filter: z.nullable(EventFilter),
  delayMinutes: z.int().check(z.minimum(0), z.maximum(limits.delayMinutesMax)),
  triggerMode: TriggerMode,
  manualTriggerButtonText: z.nullable(text(limits.buttonText)),
};

export const NewRegistration = named(
  "NewRegistration",
  z.object({
    event: input.event,
    filter: z._default(input.filter, null),
    delayMinutes: z._default(input.delayMinutes, 0),
    triggerMode: z._default(input.triggerMode, "automatic"),
    manualTriggerButtonText: z._default(input.manualTriggerButtonText, null),
  }),
);
export type NewRegistration = z.output<typeof NewRegistration>;

export const RegistrationPatch = named("RegistrationPatch", z.partial(z.object(input)));
export type RegistrationPatch = z.output<typeof RegistrationPatch>;

export const Action = named(
  "Action",
  z.object({ registrationId: Id, label: z.string(), event: z.string() }),
  "A button that the caller may press for a prospect.",
);
export type Action = z.infer<typeof Action>;

export const Webhook = named(
  "Webhook",
  z.object({
    id: Id,
    name: z.string(),
    url: z.string(),
    /** In full only in the answer that made it; elsewhere masked. */
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

const Name = text(limits.name, 1);

export const NewWebhook = named(
  "NewWebhook",
  z.object({
    name: Name,
    url: WebUrl,
    secretKey: z.optional(Secret),
    registrations: z._default(z.array(NewRegistration).check(z.maxLength(limits.registrationsPerWebhook)), []),
  }),
);
export type NewWebhook = z.output<typeof NewWebhook>;

export const WebhookPatch = named("WebhookPatch", z.partial(z.object({ name: Name, url: WebUrl })));
export type WebhookPatch = z.output<typeof WebhookPatch>;

export const SecretChoice = named("SecretChoice", z.object({ secretKey: z.optional(Secret) }));
export type SecretChoice = z.output<typeof SecretChoice>;

export const StoredWebhook = z.object({
  type: z.literal("webhook"),
  id: Id,
  companyId: Id,
  name: z.string(),
  url: z.string(),
  /** Encrypted for this row, and what is shown of it. */
  sealedSecret: z.optional(Bytes),
  secretMask: z.optional(z.string()),
  /** In place of these, in rows of before encryption that `npm run webhooks -- encrypt-secrets` has not come to. */
  secretKey: z.optional(z.string()),
  /** Signs too, until then. */
  previousSecret: z.optional(
    z.object({ sealed: z.optional(Bytes), secretKey: z.optional(z.string()), until: Timestamp }),
  ),
  status: z.enum(["active", "paused"]),
  /** Since then no attempt has succeeded. */
  failingSince: z.optional(Timestamp),
  /** While what was kept is being sent: stands in the due index, so that the sweeper sees that it goes on. While paused: among the paused. */
  dueShard: z.optional(z.string()),
  dueAt: z.optional(Timestamp),
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
  /** Events before this time may have been told with another delay. */
  delayChangedAt: z.optional(Timestamp),
});
export type StoredRegistration = z.infer<typeof StoredRegistration>;
