/** Checks the main steps of a running service, and then removes everything that it has created, even if a step fails. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { type Api, assert, call, SmokeError } from "#shared/smoke/api.ts";
import { delivered } from "#shared/smoke/attempts.ts";

export interface Smoke {
  /** Calls the API as a user who may manage webhooks and prospects. */
  readonly admin: Api;
  /** Calls the API as a user of the company of `admin`. The user may be the same as for `admin`. */
  readonly rep: Api;
  /** Calls the API as a user of another company. If it is undefined, the separation of companies is not checked. */
  readonly stranger?: Api;
  /** The URL of the service, without `/api`. */
  readonly base: string;
  readonly webhookWaitMs: number;
  /** Number of prospects that the rep creates, at most five. */
  readonly prospects: number;
  /** Number of status changes after the first one. Each must be delivered exactly once. */
  readonly changes: number;
  readonly step: (message: string) => void;
  readonly now: () => number;
}

const Identified = z.object({ id: z.number() });
const Named = z.object({ id: z.number(), name: z.nullable(z.string()), createdAt: z.string() });
const Page = z.object({ total: z.number(), items: z.array(Named) });
const Pins = z.array(Identified);
const Clusters = z.object({
  total: z.number(),
  items: z.array(z.object({ type: z.enum(["cluster", "pin"]), count: z.optional(z.number()) })),
});
const Webhooks = z.array(Named);
const Statuses = z.array(z.object({ id: z.number(), value: z.string(), isActive: z.boolean() }));
const CreatedWebhook = z.object({ id: z.number(), secretKey: z.string() });
const Detail = z.object({ statusHistory: z.array(z.object({ id: z.number() })) });

const addresses = [
  { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202", lat: 39.7393, lng: -104.9903 },
  { address1: "200 E Colfax Ave", city: "Denver", state: "CO", zip: "80203", lat: 39.7393, lng: -104.9848 },
  { address1: "1701 Wynkoop St", city: "Denver", state: "CO", zip: "80202", lat: 39.7527, lng: -105.0001 },
  { address1: "2001 Colorado Blvd", city: "Denver", state: "CO", zip: "80205", lat: 39.7475, lng: -104.9428 },
  { address1: "1005 York St", city: "Denver", state: "CO", zip: "80206", lat: 39.7322, lng: -104.9601 },
] as const;

const BBOX = "bbox=-105.01,39.73,-104.94,39.76";
const AREA = `${BBOX}&pageSize=500`;

/** The form of the names of a smoke test's records. By the names, a smoke test finds and removes records that a killed one has left. */
const OWN_NAME = /^Smoke test [0-9a-f]{8}(?: |$)/;
const LEFT_AFTER_MS = 15 * 60_000;

/** Runs all steps of the smoke test. Returns, for each status change, the milliseconds from the change to its delivery. */
export async function runSmoke(smoke: Smoke): Promise<readonly number[]> {
  const { admin, rep, step } = smoke;
  const removed = await removeLeftovers(smoke);
  if (removed > 0) step(`removed ${removed} records that an earlier run had left`);
  const made = {
    name: `Smoke test ${randomUUID().slice(0, 8)}`,
    webhooks: new Set<number>(),
    prospects: new Set<number>(),
  };
  try {
    const delays = await story(smoke, made);
    await remove(made, admin, rep);
    const listed = await call(rep, ["GET", `/api/prospects?${AREA}`], 200, Page);
    assert(!listed.items.some(({ id }) => made.prospects.has(id)), "a deleted prospect is still listed");
    step("the webhook and the prospects are deleted");
    return delays;
  } catch (error) {
    await remove(made, admin, rep).catch(() => undefined);
    throw error;
  }
}

interface Made {
  readonly name: string;
  readonly webhooks: Set<number>;
  readonly prospects: Set<number>;
}

async function story(smoke: Smoke, made: Made): Promise<readonly number[]> {
  const { admin, rep, stranger, base, webhookWaitMs: waitMs, changes, step } = smoke;
  const url = `${base}/health/webhooks`;
  const registrations = [{ event: "prospect.status_changed" }];
  const body = { name: made.name, url, registrations };
  const webhook = await call(admin, ["POST", "/api/webhooks", body], 201, CreatedWebhook);
  made.webhooks.add(webhook.id);
  step(`an admin creates webhook ${webhook.id} to ${url} for prospect.status_changed`);

  const statuses = (await call(rep, ["GET", "/api/statuses"], 200, Statuses)).filter(({ isActive }) => isActive);
  const [first, second] = statuses;
  assert(first !== undefined && second !== undefined, "the company has fewer than two active statuses");
  for (const { lat, lng, ...address } of addresses.slice(0, smoke.prospects)) {
    const prospect = { name: `${made.name} ${address.address1}`, lat, lng, address, currentStatusId: first.id };
    made.prospects.add((await call(rep, ["POST", "/api/prospects", prospect], 201, Identified)).id);
  }
  step(`a rep creates ${made.prospects.size} prospects with status ${first.value}`);

  const list = `/api/prospects?${AREA}&status=${encodeURIComponent(first.value)}`;
  const listed = await call(rep, ["GET", list], 200, Page);
  const found = new Set(listed.items.map(({ id }) => id));
  assert(
    [...made.prospects].every((id) => found.has(id)),
    "the list by bbox and status lacks a new prospect",
  );
  step(`the rep finds them in a list of ${listed.total} by bbox and status`);

  const onMap = new Set((await call(rep, ["GET", `/api/prospects/pins?${BBOX}`], 200, Pins)).map(({ id }) => id));
  assert(
    [...made.prospects].every((id) => onMap.has(id)),
    "the map lacks the pin of a new prospect",
  );
  const { items, total } = await call(rep, ["GET", `/api/prospects/clusters?${BBOX}&zoom=12`], 200, Clusters);
  const counted = items.reduce((sum, { count = 1 }) => sum + count, 0);
  assert(counted === total && total >= made.prospects.size, "the clusters of the map do not add up");
  step(`the map of the area shows their pins, and clusters of ${total} prospects`);

  const prospects = [...made.prospects];
  const [chosen] = prospects;
  assert(chosen !== undefined, "no prospect was created");
  await call(rep, ["PATCH", `/api/prospects/${chosen}`, { currentStatusId: second.id }], 200, Identified);
  const [delivery] = await delivered(admin, { webhook, prospects: made.prospects, count: 1, waitMs });
  const history = (await call(rep, ["GET", `/api/prospects/${chosen}`], 200, Detail)).statusHistory;
  assert(delivery !== undefined, "no delivery");
  const { data } = delivery.event;
  assert(data.prospect.id === chosen, "the delivery is about another prospect");
  assert(data.newStatus.value === second.value, "the delivery names another status");
  assert(data.statusHistoryId === history[0]?.id, "the delivery names another history entry");
  step(`the rep changes a status to ${second.value}; the webhook is delivered with a valid signature`);

  if (stranger === undefined) step("not checked: another company, because there is no token for one");
  else {
    const list = await call(stranger, ["GET", `/api/prospects?${AREA}`], 200, Page);
    assert(!list.items.some(({ id }) => made.prospects.has(id)), "another company lists a prospect");
    assert((await stranger("GET", `/api/prospects/${chosen}`)).status === 404, "another company sees a prospect");
    assert((await stranger("GET", `/api/webhooks/${webhook.id}`)).status === 404, "another company sees a webhook");
    step("another company sees none of these records");
  }
  if (changes === 0) return [delivery.delayMs];

  for (let i = 0; i < changes; i++) {
    const id = prospects[i % prospects.length];
    const isEvenRound = Math.floor(i / prospects.length) % 2 === 0;
    // Each round moves each prospect from one of two statuses to the other, so that each PATCH is a change. Before the first round, the
    // chosen prospect has the second status, and the other prospects have the first.
    const currentStatusId = (id === chosen) === isEvenRound ? first.id : second.id;
    await call(rep, ["PATCH", `/api/prospects/${id}`, { currentStatusId }], 200, Identified);
  }
  const count = 1 + changes;
  const deliveries = await delivered(admin, { webhook, prospects: made.prospects, count, waitMs });
  const ids = new Set(deliveries.map(({ id }) => id));
  assert(ids.size === count && deliveries.length === count, "a delivery arrived twice");
  step(`${changes} more status changes, ${changes} deliveries, none twice`);
  return deliveries.map(({ delayMs }) => delayMs);
}

async function removeLeftovers({ admin, rep, now }: Smoke): Promise<number> {
  const isLeft = ({ name, createdAt }: z.output<typeof Named>): boolean =>
    name !== null && OWN_NAME.test(name) && now() - Date.parse(createdAt) > LEFT_AFTER_MS;
  const idsIn = (items: readonly z.output<typeof Named>[]) => new Set(items.filter(isLeft).map(({ id }) => id));
  const webhooks = idsIn(await call(admin, ["GET", "/api/webhooks"], 200, Webhooks));
  const prospects = idsIn((await call(rep, ["GET", `/api/prospects?${AREA}&search=Smoke`], 200, Page)).items);
  await remove({ webhooks, prospects }, admin, rep);
  return webhooks.size + prospects.size;
}

/** Tries to delete all created records, and then throws if a deletion has failed. */
async function remove({ webhooks, prospects }: Omit<Made, "name">, admin: Api, rep: Api): Promise<void> {
  const failed: string[] = [];
  const removeOne = async (api: Api, path: string): Promise<void> => {
    const status = await api("DELETE", path).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status !== 200 && status !== 404) failed.push(`${path} (${status})`);
  };
  for (const id of webhooks) await removeOne(admin, `/api/webhooks/${id}`);
  for (const id of prospects) await removeOne(rep, `/api/prospects/${id}`);
  if (failed.length > 0) throw new SmokeError(`not deleted: ${failed.join(", ")}`);
}
