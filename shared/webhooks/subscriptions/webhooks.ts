/** Reads and writes the webhooks of a company and their registrations. */

import type { ApiContext } from "#shared/context.ts";
import { absent, all, equals, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Table } from "#shared/db/table.ts";
import { notFound } from "#shared/errors.ts";
import { markedGate } from "#shared/webhooks/limiter/backlog-mark.ts";
import { EventFilter } from "#shared/webhooks/subscriptions/filter.ts";
import {
  type RegistrationsVersion,
  registrationsChange,
  registrationsVersionOf,
} from "#shared/webhooks/subscriptions/registrations-version.ts";
import {
  type NewRegistration,
  type Registration,
  StoredRegistration,
  StoredWebhook,
  type Webhook,
} from "#shared/webhooks/subscriptions/schema.ts";
import { maskIn } from "#shared/webhooks/subscriptions/sealed-secret.ts";

export interface WebhookRows {
  readonly webhook: StoredWebhook;
  readonly registrations: StoredRegistration[];
}

/** All webhooks of the company with their registrations: one Query. Newest first. */
export const readWebhooks = async (table: Table, companyId: number): Promise<WebhookRows[]> =>
  (await readWebhooksAtVersion(table, companyId)).webhooks;

/** The row of the version is the first in the order of keys: the registrations are no older than it. */
export async function readWebhooksAtVersion(
  table: Table,
  companyId: number,
): Promise<{ version: RegistrationsVersion; webhooks: WebhookRows[] }> {
  const webhooks = new Map<number, WebhookRows>();
  let version = registrationsVersionOf(undefined);
  const { sk: countKey } = keys.webhookCount(companyId);
  // A webhook's row sorts before those of its registrations.
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

export async function listWebhooks({ table }: ApiContext, companyId: number): Promise<Webhook[]> {
  return (await readWebhooks(table, companyId)).map(maskedWebhook);
}

export async function getWebhook(context: ApiContext, companyId: number, id: number): Promise<Webhook> {
  return maskedWebhook(await readWebhook(context, companyId, id));
}

export async function readWebhook({ table }: ApiContext, companyId: number, id: number): Promise<WebhookRows> {
  const { pk, sk } = keys.webhook(companyId, id);
  let webhook: StoredWebhook | undefined;
  const registrations: StoredRegistration[] = [];
  for await (const item of table.query({ pk, begins: sk })) {
    if (item.type === "webhook") webhook = StoredWebhook.parse(item);
    else registrations.push(StoredRegistration.parse(item));
  }
  if (webhook === undefined) throw notFound("webhook");
  return { webhook, registrations };
}

/**
 * Removes the webhook with its registrations; what waits for delivery is cancelled when its time comes. What was kept for it
 * has no such time: its gate is marked, so that the sweeper has it looked after. A registration that is made or deleted after
 * the rows were read fails one of the conditions, and the rows are read again: none is left behind.
 */
export function deleteWebhook(context: ApiContext, companyId: number, id: number): Promise<void> {
  return optimistic(async () => {
    const { webhook, registrations } = await readWebhook(context, companyId, id);
    const unchanged = all(present, equals("registrationCount", webhook.registrationCount));
    const writes: Write[] = [
      { remove: keys.webhook(companyId, id), when: unchanged },
      registrationsChange(companyId, context.clock.now(), -1),
      ...registrations.map((entry) => ({ remove: keys.registration(companyId, id, entry.id), when: present })),
      { update: gateKeys.gate(companyId, id), change: { set: markedGate(companyId, id, context.clock.now()) } },
    ];
    await context.table.transact(writes);
  });
}

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

type Filtered = Pick<StoredRegistration, "filter">;

const filters = new WeakMap<Filtered, EventFilter | null>();

/** The criteria of a registration as they were sent; read once, though many events are held against them. */
export function filterOf(registration: Filtered): EventFilter | null {
  const known = filters.get(registration);
  if (known !== undefined) return known;
  const { filter } = registration;
  const read = filter === null ? null : EventFilter.parse(JSON.parse(filter));
  filters.set(registration, read);
  return read;
}

export const presentRegistration = (registration: StoredRegistration): Registration => ({
  ...registration,
  filter: filterOf(registration),
});

export const registrationWrite = (registration: StoredRegistration): Write => {
  const { companyId, webhookId, id } = registration;
  return { put: { ...keys.registration(companyId, webhookId, id), ...registration }, when: absent };
};

/** With its secret in full where it was just made. */
export function presentWebhook({ webhook, registrations }: WebhookRows, secretKey: string): Webhook {
  const { sealedSecret: _, secretMask: __, previousSecret: ___, ...shown } = webhook;
  return { ...shown, secretKey, registrations: registrations.map(presentRegistration) };
}

/** As every answer shows a webhook but those that made its secret. */
export const maskedWebhook = (rows: WebhookRows): Webhook => presentWebhook(rows, maskIn(rows.webhook));
