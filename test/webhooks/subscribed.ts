/** Creates webhooks and receivers, which are deleted when the test has finished. */
import { onTestFinished } from "vitest";
import type { NewRegistration, NewWebhook } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { type Behaviour, startReceiver } from "../harness/receiver.ts";
import { dataOf, uniqueName } from "../harness/shapes.ts";

export async function newReceiver(behave?: Behaviour) {
  const receiver = await startReceiver(behave);
  onTestFinished(receiver.close);
  return receiver;
}

export async function newWebhook(client: Client, body: Partial<NewWebhook> = {}) {
  const sent = { name: uniqueName(), url: "https://example.com/", ...body };
  const webhook = dataOf(await client.POST("/api/webhooks", { body: sent }), 201);
  onTestFinished(async () => void (await client.DELETE("/api/webhooks/{id}", at(webhook.id))));
  return webhook;
}

/** Creates a receiver, and a webhook with its URL. A text in `events` stands for a registration without a filter and a delay. */
export async function subscribe(client: Client, events: (NewRegistration | string)[], behave?: Behaviour) {
  const receiver = await newReceiver(behave);
  const registrations = events.map((event) => (typeof event === "string" ? { event } : event));
  const webhook = await newWebhook(client, { url: receiver.url, registrations });
  receiver.ignoreBefore(webhook.createdAt);
  return { receiver, webhook };
}
