/** Reads, presents and deletes a company's webhooks with their registrations. */
import * as z from "zod/mini";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import { absent, equals, type Item, present, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import type { Reads } from "#shared/db/reads.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { notFound } from "#shared/errors.ts";
import { backlogMark } from "#shared/webhooks/limiter/limiter.ts";
import { EventFilter } from "#shared/webhooks/subscriptions/filter.ts";
import {
  type NewRegistration,
  type Registration,
  StoredRegistration,
  StoredWebhook,
  type Webhook,
} from "#shared/webhooks/subscriptions/schema.ts";
import { warningsOf } from "#shared/webhooks/subscriptions/warnings.ts";

export interface WebhookRows {
  readonly webhook: StoredWebhook;
  readonly registrations: StoredRegistration[];
}

export const readWebhooks = async (table: Reads, companyId: number): Promise<WebhookRows[]> =>
  (await readWebhooksAtVersion(table, companyId)).webhooks;

/** The Query returns the row with the version of the registrations first, so the registrations are at least as new as the version. */
export async function readWebhooksAtVersion(
  table: Reads,
  companyId: number,
): Promise<{ version: RegistrationsVersion; webhooks: WebhookRows[] }> {
  const webhooks = new Map<number, WebhookRows>();
  let version = registrationsVersionOf(undefined);
  const { sk: countKey } = keys.webhookCount(companyId);
  for await (const item of table.query(keys.webhooks(companyId))) {
    if (item.sk === countKey) {
      version = registrationsVersionOf(item);
    } else if (item.type === "webhook") {
      const webhook = StoredWebhook.parse(item);
      webhooks.set(webhook.id, { webhook, registrations: [] });
    } else if (item.type === "registration") {
      const registration = StoredRegistration.parse(item);
      webhooks.get(registration.webhookId)?.registrations.push(registration);
    }
  }
  const newestFirst = [...webhooks.values()].sort(({ webhook: a }, { webhook: b }) =>
    a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : b.id - a.id,
  );
  return { version, webhooks: newestFirst };
}

export async function listWebhooks({ table }: ReadContext, companyId: number): Promise<Webhook[]> {
  return (await readWebhooks(table, companyId)).map(maskedWebhook);
}

export async function getWebhook(context: ReadContext, companyId: number, id: number): Promise<Webhook> {
  return maskedWebhook(await readWebhook(context, companyId, id));
}

export async function readWebhook({ table }: ReadContext, companyId: number, id: number): Promise<WebhookRows> {
  const rows = await findWebhook(table, companyId, id);
  if (rows === undefined) throw notFound("webhook");
  return rows;
}

export async function findWebhook(table: Reads, companyId: number, id: number): Promise<WebhookRows | undefined> {
  const { pk, sk } = keys.webhook(companyId, id);
  let webhook: StoredWebhook | undefined;
  const registrations: StoredRegistration[] = [];
  for await (const item of table.query({ pk, begins: sk })) {
    if (item.type === "webhook") webhook = StoredWebhook.parse(item);
    else registrations.push(StoredRegistration.parse(item));
  }
  return webhook && { webhook, registrations };
}

/**
 * Deletes the webhook with its registrations. Deliveries in a backlog have no message that could cancel them. The transaction therefore
 * sets the mark in the limiter's row, so that a step of the drain cancels both backlogs.
 */
export async function deleteWebhook(context: ApiContext, companyId: number, id: number): Promise<Plan<{ id: number }>> {
  const { webhook, registrations } = await readWebhook(context, companyId, id);
  const writes: Write[] = [
    { remove: keys.webhook(companyId, id), when: equals("registrationCount", webhook.registrationCount) },
    registrationsChange(companyId, context.clock.now(), -1),
    ...registrations.map((entry) => ({ remove: keys.registration(companyId, id, entry.id), when: present })),
    { update: limiterKeys.limiter(companyId, id), change: { set: backlogMark(companyId, id, context.clock.now()) } },
  ];
  return { writes, answer: { id } };
}

/** The version of a company's registrations, by which a publisher notices that its cache is out of date. */
export interface RegistrationsVersion {
  readonly number: number;
  /** The time of the last change, in milliseconds since 1970. */
  readonly changedAt: number;
}

const CountRow = z.object({
  registrationsVersion: z._default(z.int(), 0),
  registrationsChangedAt: z._default(z.int(), 0),
});

/** The version is in the row that counts the company's webhooks. A company that never had a webhook has no such row. */
export function registrationsVersionOf(row: Item | undefined): RegistrationsVersion {
  const { registrationsVersion: number, registrationsChangedAt: changedAt } = CountRow.parse(row ?? {});
  return { number, changedAt };
}

/** Add this write to each transaction that changes registrations. Pass 1 or -1 as `webhooks` if it adds or deletes a webhook. */
export const registrationsChange = (companyId: number, nowMs: number, webhooks?: 1 | -1) => ({
  update: keys.webhookCount(companyId),
  change: {
    set: { registrationsChangedAt: nowMs },
    add: { registrationsVersion: 1, ...(webhooks !== undefined && { webhooks }) },
  },
});

export function storedRegistration(
  companyId: number,
  webhookId: number,
  id: number,
  input: NewRegistration,
  createdAt: string,
): StoredRegistration {
  const filter = input.filter === null ? null : JSON.stringify(input.filter);
  return { type: "registration", id, companyId, webhookId, ...input, filter, createdAt };
}

export const registrationWrite = (registration: StoredRegistration): Write => {
  const { companyId, webhookId, id } = registration;
  return { put: { ...keys.registration(companyId, webhookId, id), ...registration }, when: absent };
};

type Filtered = Pick<StoredRegistration, "filter">;

const filters = new WeakMap<Filtered, EventFilter | null>();

/** Returns the parsed filter of a registration. The result is cached, because many events are compared with the same filter. */
export function filterOf(registration: Filtered): EventFilter | null {
  const known = filters.get(registration);
  if (known !== undefined) return known;
  const { filter } = registration;
  const parsed = filter === null ? null : EventFilter.parse(JSON.parse(filter));
  filters.set(registration, parsed);
  return parsed;
}

export function presentRegistration(registration: StoredRegistration): Registration {
  const shown = { ...registration, filter: filterOf(registration) };
  const warnings = warningsOf(shown);
  return warnings.length === 0 ? shown : { ...shown, warnings };
}

/** `secretKey` must be the mask, except in the answer that creates the secret. */
export function presentWebhook({ webhook, registrations }: WebhookRows, secretKey: string): Webhook {
  const { sealedSecret: _, secretMask: __, previousSecret: ___, ...shown } = webhook;
  return { ...shown, secretKey, registrations: registrations.map(presentRegistration) };
}

export const maskedWebhook = (rows: WebhookRows): Webhook => presentWebhook(rows, rows.webhook.secretMask);
