/**
 * Tests that each write of a webhook registration raises the company's version number, and that no other write raises it. By this number,
 * functions notice that their cached registrations are out of date.
 */

import { beforeAll, describe, expect, test } from "vitest";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { NewRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { registrationsVersionOf } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import {
  createRegistration,
  createWebhook,
  deleteRegistration,
  deleteWebhook,
  pauseWebhook,
  resumeWebhook,
  rotateSecret,
  updateRegistration,
  updateWebhook,
} from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { allowLoopback, automatic } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
beforeAll(allowLoopback);

const START = Date.UTC(2026, 5, 1);
const CHANGED = START + 1_000;
const url = "http://127.0.0.1:1/";
const input = automatic("prospect.created");

interface Setup {
  readonly companyId: number;
  readonly context: ApiContext;
}

/**
 * Creates the company and its webhook at the time START. The tests write at the later time CHANGED. They recognise their own writes by this
 * time.
 */
async function setUp(
  registrations: NewRegistration[] | undefined,
): Promise<Setup & { webhookId: number; registrationId: number }> {
  const time = { now: START };
  const context = contextOn(db.direct, { now: () => time.now });
  const { companyId } = await newOwner(context);
  const made = registrations && (await createWebhook(context, companyId, { name: "x", url, registrations }));
  time.now = CHANGED;
  return { companyId, context, webhookId: made?.id ?? 0, registrationId: made?.registrations[0]?.id ?? 0 };
}

const versionOf = async ({ companyId }: Setup) =>
  registrationsVersionOf(await db.direct.get(keys.webhookCount(companyId)));

type Made = Awaited<ReturnType<typeof setUp>>;

describe("the version", () => {
  const writers: Record<string, (on: Made) => Promise<unknown>> = {
    "a webhook is created": ({ context, companyId }) =>
      createWebhook(context, companyId, { name: "x", url, registrations: [input] }),
    "a webhook is deleted": ({ context, companyId, webhookId }) => deleteWebhook(context, companyId, webhookId),
    "a registration is created": ({ context, companyId, webhookId }) =>
      createRegistration(context, companyId, webhookId, input),
    "a registration is changed": ({ context, companyId, webhookId, registrationId }) =>
      updateRegistration(context, companyId, webhookId, registrationId, { delayMinutes: 1 }),
    "a registration is deleted": ({ context, companyId, webhookId, registrationId }) =>
      deleteRegistration(context, companyId, webhookId, registrationId),
  };
  test.each(Object.entries(writers))("is raised by one, with the time of the change, when %s", async (_, write) => {
    const on = await setUp([input]);
    expect(await versionOf(on)).toEqual({ number: 1, changedAt: START });
    await write(on);
    expect(await versionOf(on)).toEqual({ number: 2, changedAt: CHANGED });
  });

  const others: Record<string, (on: Made) => Promise<unknown>> = {
    "a patch changes nothing": ({ context, companyId, webhookId, registrationId }) =>
      updateRegistration(context, companyId, webhookId, registrationId, { delayMinutes: 0 }),
    "a changed registration does not exist": async ({ context, companyId, webhookId }) =>
      expect(updateRegistration(context, companyId, webhookId, 1, { delayMinutes: 1 })).rejects.toMatchObject({
        code: "not_found",
      }),
    "a deleted registration does not exist": async ({ context, companyId, webhookId }) =>
      expect(deleteRegistration(context, companyId, webhookId, 1)).rejects.toMatchObject({ code: "not_found" }),
    "a webhook is renamed, gets a new secret, is paused and resumed": async ({ context, companyId, webhookId }) => {
      await updateWebhook(context, companyId, webhookId, { name: "y" });
      await rotateSecret(context, companyId, webhookId, {});
      await pauseWebhook(context, companyId, webhookId);
      const queue = { send: async () => undefined, returnIn: async () => undefined };
      await resumeWebhook(context, queue, companyId, webhookId);
    },
  };
  test.each(Object.entries(others))("stays unchanged when %s", async (_, write) => {
    const on = await setUp([input]);
    await write(on);
    expect(await versionOf(on)).toEqual({ number: 1, changedAt: START });
  });

  test("is 0 for a company without webhooks", async () => {
    expect(await versionOf(await setUp(undefined))).toEqual({ number: 0, changedAt: 0 });
  });
});
