/** Verbs of webhooks and deliveries, for the laws of interleaved.ts: they run another verb between two table calls of each verb. */
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import type { Exchange } from "#shared/outbound/post.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { consume } from "#shared/webhooks/deliver/consume.ts";
import { readDeliveries } from "#shared/webhooks/delivery.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { type DrainMessage, drainMessage, messageFor, type QueueMessage } from "#shared/webhooks/messages.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import * as api from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { createdProspect } from "../webhooks/fixtures.ts";
import { type Group, holds, type Law, type Process, replacesNothing, START, type Verb } from "./interleaved.ts";

const URL = "http://127.0.0.1:1/";
const SECRET = "0123456789abcdef";
const automatic = {
  event: "prospect.created",
  filter: null,
  delayMinutes: 0,
  triggerMode: "automatic" as const,
  manualTriggerButtonText: null,
};

const newWebhook = { name: "v", url: URL, secretKey: SECRET, registrations: [automatic] };

async function stage(context: Process, registration: Parameters<typeof api.createRegistration>[3] = automatic) {
  const { caller } = await newCompany(context);
  const { companyId } = caller;
  const { id: prospectId } = await api.createProspect(context, caller, { name: "a" });
  const input = { name: "w", url: URL, secretKey: SECRET, registrations: [] };
  const { id: webhookId } = await api.createWebhook(context, companyId, input);
  const { id: registrationId } = await api.createRegistration(context, companyId, webhookId, registration);
  return { caller, companyId, webhookId, registrationId, prospectId };
}
type Webhook = Awaited<ReturnType<typeof stage>>;

/** Verbs that delete a webhook or a registration. Afterwards, no delivery or registration may be created for what they have deleted. */
const first = ["deletion", "deleted registration"];

const common: Readonly<Record<string, Verb<Webhook>>> = {
  attempt,
  pause: (context, { companyId, webhookId }) => api.pauseWebhook(context, companyId, webhookId),
  deletion: (context, { companyId, webhookId }) => api.deleteWebhook(context, companyId, webhookId),
  "deleted registration": (context, { companyId, webhookId, registrationId }) =>
    api.deleteRegistration(context, companyId, webhookId, registrationId),
};

const settings: Group<Webhook> = {
  first,
  stage: (context) =>
    stage(context, { ...automatic, triggerMode: "manual", event: "button", manualTriggerButtonText: "b" }),
  // These fields count changes of registrations, and are not compared: a request counts as a change even if another request has made the
  // same change meanwhile.
  ignored: ["registrationsVersion", "registrationsChangedAt", "delayChangedAt"],
  pairs: {
    "new webhook": ["new webhook"],
    name: ["deletion", "pause"],
    rotation: ["rotation", "deletion", "name"],
    pause: ["deletion", "rotation", "pause"],
    deletion: ["new registration", "deleted registration", "other registration", "deletion"],
    "new registration": ["deletion", "new registration"],
    "changed registration": ["deleted registration", "filter of the registration", "deletion"],
    "deleted registration": ["deleted registration", "deletion"],
  },
  refusals: {
    name: { deletion: "not_found" },
    rotation: { deletion: "not_found" },
    pause: { deletion: "not_found" },
    deletion: { deletion: "not_found" },
    "new registration": { deletion: "not_found" },
    "changed registration": { deletion: "not_found", "deleted registration": "not_found" },
    "deleted registration": { deletion: "not_found", "deleted registration": "not_found" },
  },
  verbs: {
    ...common,
    "new webhook": (context, { companyId }) => api.createWebhook(context, companyId, newWebhook),
    name: (context, { companyId, webhookId }) => api.updateWebhook(context, companyId, webhookId, { name: "z" }),
    rotation: (context, { companyId, webhookId }) =>
      api.rotateSecret(context, companyId, webhookId, { secretKey: `${context.clock.now()}${SECRET}` }),
    "new registration": (context, { companyId, webhookId }) =>
      api.createRegistration(context, companyId, webhookId, automatic),
    "changed registration": (context, { companyId, webhookId, registrationId }) =>
      api.updateRegistration(context, companyId, webhookId, registrationId, { delayMinutes: 5 }),
    "filter of the registration": (context, { companyId, webhookId, registrationId }) =>
      api.updateRegistration(context, companyId, webhookId, registrationId, { filter: { name: "a" } }),
    // Replaces the registration by another one, so that the number of registrations stays the same.
    "other registration": async (context, { companyId, webhookId, registrationId }) => {
      await api.deleteRegistration(context, companyId, webhookId, registrationId);
      await api.createRegistration(context, companyId, webhookId, automatic);
    },
  },
};

const answers = (context: Process, exchange: Partial<Exchange>): Process => ({
  ...context,
  post: async (post) => ({ ...(await context.post(post)), ...exchange }),
});

async function receive(context: Process, message: QueueMessage): Promise<void> {
  const [end] = await consume(context, [{ message, isRepeat: false }]);
  if (end?.status === "rejected") throw end.reason;
}

const stepOf = (drain: DrainMessage["drain"]) => (context: Process, at: Webhook) =>
  receive(context, drainMessage(at, drain));

/** Processes the queue message of the first attempt of each delivery. */
async function attempt(context: Process, at: Webhook): Promise<void> {
  for await (const delivery of readDeliveries(context.table, at, {}))
    await receive(context, messageFor({ ...delivery, attempt: 1 }));
}

const change = (context: Process, { companyId }: Webhook, id: number, version: number) => {
  const updatedAt = iso(START + version * 1_000);
  const name = `name ${version}`;
  const after = prospectItem({ ...createdProspect(companyId, id), version, updatedAt, name });
  const before = version === 1 ? undefined : prospectItem({ ...createdProspect(companyId, id), version: version - 1 });
  return publishChanges(context, batchReads(context), [{ before, after }]);
};

const deliveries: Group<Webhook & { readonly deliveryId: string }> = {
  stage: async (context) => {
    const at = await stage(context);
    await change(context, at, 4_711, 1);
    for await (const { id } of readDeliveries(context.table, at, {})) return { ...at, deliveryId: id };
    throw new Error("no delivery");
  },
  // Rows of the concurrency limiter are not compared, because they may also count the attempt of the competing verb.
  // limiter-kills.deep.test.ts tests the limiter.
  ignoredTypes: ["limiter"],
  // This field is not compared, because the sweeper may set it on a delivery that the competing verb has already sent.
  ignored: ["sweptAt"],
  repeats: ["publication again"],
  pairs: {
    attempt: ["attempt", "pause", "redelivery", "deletion"],
    "failed attempt": ["failed attempt", "redelivery", "deletion"],
    gone: ["gone", "pause", "deletion"],
    "unsent attempt": ["attempt"],
    redelivery: ["attempt", "failed attempt"],
    "publication again": ["publication again", "attempt"],
    sweep: ["attempt", "redelivery", "sweep"],
  },
  refusals: {
    redelivery: { deletion: "not_found", "deleted registration": "conflict" },
  },
  verbs: {
    ...common,
    "failed attempt": (context, at) => attempt(answers(context, { status: 500 }), at),
    gone: (context, at) => attempt(answers(context, { status: 410 }), at),
    "unsent attempt": (context, at) => attempt(answers(context, { status: null, isUnsent: true }), at),
    redelivery: (context, { companyId, webhookId, deliveryId }) =>
      api.redeliver(context, context.queue, companyId, webhookId, deliveryId),
    "publication again": (context, at) => change(context, at, 4_711, 1),
    sweep: (context) => sweep(context, { assume: "messages-kept" }),
  },
};

const redeliveries = { ...deliveries, first, pairs: { redelivery: ["deletion", "deleted registration"] } };

/** Two deliveries of a webhook that was paused and is active again. One is in the paused backlog, and the other one is exhausted. */
const backlogs: Group<Webhook & { readonly deliveryId: string }> = {
  stage: async (context) => {
    const at = await deliveries.stage(context);
    const { companyId, webhookId } = at;
    await api.pauseWebhook(context, companyId, webhookId);
    await change(context, at, 4_712, 1);
    await attempt(context, at);
    await api.resumeWebhook(context, context.queue, companyId, webhookId);
    const key = keys.delivery(companyId, webhookId, at.deliveryId);
    await context.table.write({ update: key, change: { set: { state: "exhausted" }, remove: ["dueShard"] } });
    return at;
  },
  first,
  ignoredTypes: ["limiter"],
  ignored: ["id", "replayId"],
  repeats: ["resumption"],
  pairs: {
    pause: ["resumption", "step"],
    resumption: ["pause", "step"],
    step: ["step", "pause", "deletion", "attempt"],
    replay: ["replay of a part", "deletion"],
    redelivery: ["replay"],
  },
  refusals: {
    replay: { deletion: "not_found", "replay of a part": "conflict" },
  },
  verbs: {
    ...deliveries.verbs,
    resumption: (context, { companyId, webhookId }) => api.resumeWebhook(context, context.queue, companyId, webhookId),
    step: stepOf("paused"),
    replay: (context, { companyId, webhookId }) => api.startReplay(context, context.queue, companyId, webhookId, RANGE),
    "replay of a part": (context, { companyId, webhookId }) =>
      api.startReplay(context, context.queue, companyId, webhookId, { ...RANGE, to: iso(START + 30_000) }),
  },
};
const RANGE = { from: iso(START), deliveries: "undelivered" as const };

const replays: Group<Webhook & { readonly deliveryId: string }> = {
  ...backlogs,
  repeats: ["replay"],
  stage: async (context) => {
    const at = await backlogs.stage(context);
    // A replay contains only deliveries that were created before its start, so this replay starts later than `stage` creates deliveries.
    const later = { ...context, clock: { now: () => START + 30_000 } };
    await api.startReplay(later, context.queue, at.companyId, at.webhookId, RANGE);
    return at;
  },
  pairs: {
    "step of the replay": ["step of the replay", "deletion", "redelivery", "attempt"],
    replay: ["step of the replay"],
  },
  verbs: { ...backlogs.verbs, "step of the replay": stepOf("replay") },
};

/** A registration with a delay of a minute. Its window is open, and is due when the verbs run, a minute later. */
const windows: Group<Webhook> = {
  stage: async (context) => {
    const at = await stage(context, { ...automatic, event: "prospect.updated", delayMinutes: 1 });
    await change(context, at, 4_711, 2);
    return at;
  },
  ignoredTypes: ["limiter"],
  ignored: ["registrationsVersion", "delayChangedAt"],
  repeats: ["the same event"],
  pairs: {
    attempt: ["event in time", "late event", "deletion", "attempt"],
    "event in time": ["another event in time", "attempt", "late event", "the same event"],
    "the same event": ["the same event", "attempt"],
    "late event": ["attempt", "event in time", "another event in time"],
  },
  verbs: {
    ...common,
    attempt: (context, at) => attempt({ ...context, clock: { now: () => START + 70_000 } }, at),
    "event in time": (context, at) => change(context, at, 4_711, 3),
    "another event in time": (context, at) => change(context, at, 4_711, 4),
    "the same event": (context, at) => change(context, at, 4_711, 2),
    "late event": (context, at) => change(context, at, 4_711, 100),
  },
};

const manual: Group<Webhook> = {
  first,
  stage: settings.stage,
  ignored: ["id", "eventId", "deliveryId", "body"],
  random: /(manual|test)-[0-9a-f-]{36}|dlv_[0-9a-z]{29}|(?<=#D#[0-9]+#)[0-9]|(?<=DUE#)[0-9]/g,
  pairs: { trigger: ["trigger", "deletion", "deleted registration"], "test delivery": ["deletion"] },
  refusals: {
    trigger: { deletion: "not_found", "deleted registration": "not_found" },
    "test delivery": { deletion: "not_found" },
  },
  verbs: {
    ...common,
    trigger: (context, { caller, prospectId, registrationId }) =>
      api.triggerAction(context, context, caller, prospectId, registrationId),
    "test delivery": (context, { caller, webhookId }) =>
      api.sendTestDelivery(context, context.queue, caller, webhookId, "webhook.test"),
  },
};

const records = replacesNothing({
  stage,
  verbs: {
    webhook: (context, { companyId }) => api.createWebhook(context, companyId, newWebhook),
    "webhook without registrations": (context, { companyId }) =>
      api.createWebhook(context, companyId, { ...newWebhook, registrations: [] }),
    registration: (context, { companyId, webhookId }) =>
      api.createRegistration(context, companyId, webhookId, automatic),
  },
});

export const laws: Readonly<Record<string, Law>> = {
  "webhooks and registrations": holds(settings),
  deliveries: holds(deliveries),
  "deliveries that are sent again": holds(redeliveries),
  "a running replay": holds(replays),
  "backlogs and replays": holds(backlogs),
  "debounce windows": holds(windows),
  "manual triggers": holds(manual),
  "a webhook or a registration with an id that is in use replaces no other one": records,
};
