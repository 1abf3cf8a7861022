/**
 * Tests that writes which change no registration do not raise the company's version number. By this number, functions notice that their
 * cached registrations are out of date.
 */
import { describe, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { registrationsVersionOf } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { deleteRegistration, rotateSecret, updateRegistration, updateWebhook } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { newPipeline, type Pipeline, pause, resume } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();

const versionOf = async (companyId: number) =>
  registrationsVersionOf(await db.direct.get(keys.webhookCount(companyId)));

describe("the version", () => {
  const others: Record<string, (at: Pipeline) => Promise<unknown>> = {
    "a patch changes nothing": ({ api, companyId, webhookId, registrationId }) =>
      updateRegistration(api, companyId, webhookId, registrationId, { delayMinutes: 0 }),
    "a changed registration does not exist": async ({ api, companyId, webhookId }) =>
      expect(updateRegistration(api, companyId, webhookId, 1, { delayMinutes: 1 })).rejects.toMatchObject({
        code: "not_found",
      }),
    "a deleted registration does not exist": async ({ api, companyId, webhookId }) =>
      expect(deleteRegistration(api, companyId, webhookId, 1)).rejects.toMatchObject({ code: "not_found" }),
    "a webhook is renamed, gets a new secret, is paused and resumed": async (at) => {
      const { api, companyId, webhookId } = at;
      await updateWebhook(api, companyId, webhookId, { name: "y" });
      await rotateSecret(api, companyId, webhookId, {});
      await pause(at);
      await resume(at);
    },
  };
  test.each(Object.entries(others))("stays unchanged when %s", async (_, write) => {
    const at = await newPipeline(db);
    const before = await versionOf(at.companyId);
    at.clock += 1_000;
    await write(at);
    expect(await versionOf(at.companyId)).toEqual(before);
  });

  test("is 0 for a company without webhooks", async () => {
    const { companyId } = await newOwner(contextOn(db.direct));
    expect(await versionOf(companyId)).toEqual({ number: 0, changedAt: 0 });
  });
});
