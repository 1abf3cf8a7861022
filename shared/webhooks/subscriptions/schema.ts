/** The schemas of webhooks and their registrations: API requests and answers, and stored rows. */
import * as z from "zod/mini";
import { isBlank } from "#shared/blank.ts";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { atMost, Bytes, Id, label, malformed, named, requiredText, Timestamp, text } from "#shared/schema.ts";
import { EventFilter } from "#shared/webhooks/subscriptions/filter.ts";

/** The prefix of a secret of Standard Webhooks. The rest of such a secret is a key in base64. */
export const STANDARD_PREFIX = "whsec_";

/** Standard Webhooks requires the base64 of a key of 24 to 64 bytes. */
const isStandardKey = (secret: string): boolean => {
  const encoded = secret.slice(STANDARD_PREFIX.length);
  const key = Buffer.from(encoded, "base64");
  return key.length >= limits.standardKeyMin && key.length <= limits.standardKey && key.toString("base64") === encoded;
};

const Secret = text(limits.secretKey, limits.secretKeyMin).check(
  z.regex(/\S/, "must not consist of blanks only"),
  z.refine((secret) => !secret.startsWith(STANDARD_PREFIX) || isStandardKey(secret), {
    error: `must be the base64 of ${limits.standardKeyMin} to ${limits.standardKey} bytes after ${STANDARD_PREFIX}`,
  }),
);

export const WebUrl = z.url({ error: malformed("must be a valid URL") }).check(atMost(limits.url));

const TriggerMode = z.enum(["automatic", "manual"]);

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
  z.object({ ...registrationFields, warnings: z.optional(z.array(z.string())) }),
  "A subscription of a webhook to one event.",
);
export type Registration = z.infer<typeof Registration>;

const input = {
  event: requiredText(limits.eventName),
  filter: z.nullable(EventFilter),
  delayMinutes: z.int().check(z.minimum(0), z.maximum(limits.delayMinutesMax)),
  triggerMode: TriggerMode,
  // Not `orNull`, which transforms the value: the OpenAPI document would then lack the default.
  manualTriggerButtonText: z
    .nullable(text(limits.buttonText))
    .check(z.overwrite((value) => (value !== null && isBlank(value) ? null : value))),
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
  "A new subscription of a webhook to one event.",
);
export type NewRegistration = z.output<typeof NewRegistration>;

/* @__PURE__ */ explain([NewRegistration], () => ({ example: { event: "prospect.created", delayMinutes: 15 } }));

export const RegistrationPatch = named(
  "RegistrationPatch",
  z.partial(z.object(input)),
  "Only sent fields change; null as `filter` means every event of that name.",
);
export type RegistrationPatch = z.output<typeof RegistrationPatch>;

/* @__PURE__ */ explain([RegistrationPatch], () => ({ example: { delayMinutes: 30 } }));

export const Action = named(
  "Action",
  z.object({ registrationId: Id, label: z.string(), event: z.string() }),
  "A button by which the caller can trigger a delivery for a prospect.",
);
export type Action = z.infer<typeof Action>;

/* @__PURE__ */ explain([Registration, NewRegistration, RegistrationPatch, Action], () => ({
  fields: {
    event:
      "Name of the event, such as `prospect.status_changed`. `GET /api/webhooks/event-types` lists the names of the events that the service sends. Other names are accepted with a warning, and only an action sends them. The header `X-Service-Event` holds it with `%` and all characters outside visible ASCII percent-encoded.",
    filter: "Criteria that the event's `data` must all meet; null means every event of that name.",
    delayMinutes: `Minutes from the event to its delivery, 0 to ${limits.delayMinutesMax}.`,
    triggerMode: "`manual` waits until a user presses a button.",
    manualTriggerButtonText: "Label of that button.",
    warnings:
      "Why the registration sends nothing as it is: no event has its name, or the event has no field that its filter names. Absent if there is no reason.",
    registrationId: "The registration that the button belongs to.",
    label: "The text on the button.",
  },
}));

export const Webhook = named(
  "Webhook",
  z.object({
    id: Id,
    name: z.string(),
    url: z.string(),
    /** Only the answer that creates the secret shows it completely. All other answers show a mask. */
    secretKey: z.string(),
    status: z.enum(["active", "paused"]),
    companyId: Id,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    registrations: z.array(Registration),
  }),
  "A receiver of events. Only the answer that creates `secretKey` shows it in full.",
);
export type Webhook = z.infer<typeof Webhook>;

/** Returns the secret in the form that the libraries of Standard Webhooks and Svix accept. */
const standardFormOf = (secretKey: string): string =>
  secretKey.startsWith(STANDARD_PREFIX)
    ? secretKey
    : `${STANDARD_PREFIX}${Buffer.from(secretKey, "utf8").toString("base64")}`;

const WithSecret = named(
  "WebhookWithSecret",
  z.extend(Webhook, { standardWebhooksSecret: z.string() }),
  "A webhook with its new secret in full. No other answer shows the secret.",
);

/** `standardWebhooksSecret` is computed from `secretKey` each time, also for a response that is stored with an `Idempotency-Key`. */
export const WebhookWithSecret = z.pipe(
  z.pipe(
    Webhook,
    z.transform((webhook: Webhook) => ({ ...webhook, standardWebhooksSecret: standardFormOf(webhook.secretKey) })),
  ),
  WithSecret,
);

const Name = label(limits.name);

export const NewWebhook = named(
  "NewWebhook",
  z.object({
    name: Name,
    url: WebUrl,
    secretKey: z.optional(Secret),
    registrations: z._default(z.array(NewRegistration).check(z.maxLength(limits.registrationsPerWebhook)), []),
  }),
  "A new receiver of events, with its first registrations.",
);
export type NewWebhook = z.output<typeof NewWebhook>;

/* @__PURE__ */ explain([NewWebhook], () => ({
  example: {
    name: "CRM",
    url: "https://crm.example.com/hooks/canvassing",
    registrations: [{ event: "prospect.status_changed", filter: { "newStatus.value": ["Sold", "Appointment set"] } }],
  },
}));

export const WebhookPatch = named(
  "WebhookPatch",
  z.partial(z.object({ name: Name, url: WebUrl })),
  "Only sent fields change.",
);
export type WebhookPatch = z.output<typeof WebhookPatch>;

/* @__PURE__ */ explain([WebhookPatch], () => ({ example: { url: "https://crm.example.com/hooks/canvassing-2" } }));

export const SecretChoice = named(
  "SecretChoice",
  z.object({ secretKey: z.optional(Secret) }),
  "The new secret; without it the service creates one in the form of the old secret.",
);
export type SecretChoice = z.output<typeof SecretChoice>;

/* @__PURE__ */ explain([WithSecret], () => ({
  fields: {
    standardWebhooksSecret:
      "The key of `webhook-signature` as `whsec_` and base64. The libraries of Standard Webhooks and Svix accept it unchanged. Equal to `secretKey` if that begins with `whsec_`.",
  },
}));

/* @__PURE__ */ explain([Webhook, WithSecret, NewWebhook, WebhookPatch, SecretChoice], () => ({
  fields: {
    url: "Must be https and lead to public addresses only.",
    secretKey: `Key of the signature in \`X-Service-Signature\`. Only the answers that set it show it in full; other answers show at most its last four characters, and never more than a quarter of it. A secret of your own has at least ${limits.secretKeyMin} characters. If it begins with \`${STANDARD_PREFIX}\`, the rest is the base64 of a key of ${limits.standardKeyMin} to ${limits.standardKey} bytes.`,
    registrations: `At most ${limits.registrationsPerWebhook}.`,
  },
}));
/* @__PURE__ */ explain([SecretChoice], () => ({ example: { secretKey: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" } }));

export const StoredWebhook = z.object({
  type: z.literal("webhook"),
  id: Id,
  companyId: Id,
  name: z.string(),
  url: z.string(),
  /** The secret, encrypted for this row. `secretMask` contains its last characters. */
  sealedSecret: Bytes,
  secretMask: z.string(),
  /** The secret before the last rotation, valid until `until`. */
  previousSecret: z.optional(z.object({ sealed: Bytes, until: Timestamp })),
  status: z.enum(["active", "paused"]),
  /** The time of the first failure after the last success. Absent after a success. */
  failingSince: z.optional(Timestamp),
  /**
   * The partition of the due index that contains the row. While the webhook is paused, this is the partition of paused webhooks. After a
   * resume, it is one that the sweeper reads, until the paused backlog is sent.
   */
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
  /** JSON text, because a DynamoDB map would not return all keys and numbers unchanged. */
  filter: z.nullable(z.string()),
  companyId: Id,
  webhookId: Id,
  createdAt: Timestamp,
  /** The time of the last change of the delay. Events before this time may have been published with another delay. */
  delayChangedAt: z.optional(Timestamp),
});
export type StoredRegistration = z.infer<typeof StoredRegistration>;
