/**
 * `npm run smoke -- [--base URL]` checks a running service over HTTP, as a client that shares no code with the functions. A rep works on
 * prospects, a receiver gets signed webhooks, and another company sees none of this.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { serviceUrl } from "../infra/local/address.ts";

const usage = `npm run smoke -- [--base URL]
  Against a deployed service also: --admin-token, --rep-token, --other-token (access tokens of an admin, a sales user of
  the same company and a user of another company), and --receiver-port PORT with a --receiver-url URL that leads to that port.`;

const { values: options } = parseArgs({
  options: {
    base: { type: "string" },
    "admin-token": { type: "string" },
    "rep-token": { type: "string" },
    "other-token": { type: "string" },
    "receiver-port": { type: "string", default: "0" },
    "receiver-url": { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (options.help) {
  console.log(usage);
  process.exit(0);
}
const base = baseUrl();

const CHANGES = 200;
const DELIVERY_WAIT_MS = 30_000;

const addresses = [
  { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202", lat: 39.7393, lng: -104.9903 },
  { address1: "200 E Colfax Ave", city: "Denver", state: "CO", zip: "80203", lat: 39.7393, lng: -104.9848 },
  { address1: "1701 Wynkoop St", city: "Denver", state: "CO", zip: "80202", lat: 39.7527, lng: -105.0001 },
  { address1: "2001 Colorado Blvd", city: "Denver", state: "CO", zip: "80205", lat: 39.7475, lng: -104.9428 },
  { address1: "1005 York St", city: "Denver", state: "CO", zip: "80206", lat: 39.7322, lng: -104.9601 },
] as const;

const Identified = z.object({ id: z.number() });
const Page = z.object({ total: z.number(), items: z.array(Identified) });
const Statuses = z.array(z.object({ id: z.number(), value: z.string(), isActive: z.boolean() }));
const CreatedWebhook = z.object({ id: z.number(), secretKey: z.string() });
const Detail = z.object({ statusHistory: z.array(z.object({ id: z.number() })) });
const Delivered = z.object({
  id: z.string(),
  event: z.literal("prospect.status_changed"),
  createdAt: z.string(),
  data: z.object({ prospect: Identified, newStatus: z.object({ value: z.string() }), statusHistoryId: z.number() }),
});

interface Receipt {
  readonly body: string;
  readonly signature: string;
  readonly receivedAt: number;
}

function baseUrl(): string {
  try {
    return options.base?.replace(/\/$/, "") ?? serviceUrl();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}

let stepNumber = 0;
const step = (message: string): void => console.log(`${String(++stepNumber).padStart(2)}. ${message}`);

function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

async function token(given: string | undefined, email: string): Promise<string> {
  if (given !== undefined) return given;
  const answer = await fetch(`${base}/local/token`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email }),
  });
  assert(answer.ok, `no token for ${email}: ${answer.status}. ${usage}`);
  return (await answer.text()).trim();
}

const clientOf = (accessToken: string) => async (method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: { Authorization: `Bearer ${accessToken}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: await answer.json() };
};

const receipts: Receipt[] = [];
const receiver = createServer(async (request, response) => {
  const body = await text(request);
  const signature = String(request.headers["x-service-signature"] ?? "");
  receipts.push({ body, signature, receivedAt: Date.now() });
  response.end();
});

async function received(count: number): Promise<void> {
  const deadline = Date.now() + DELIVERY_WAIT_MS;
  while (receipts.length < count) {
    assert(Date.now() < deadline, `only ${receipts.length} of ${count} deliveries came within ${DELIVERY_WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function verified(receipt: Receipt, secretKey: string): z.infer<typeof Delivered> {
  const expected = createHmac("sha256", secretKey).update(receipt.body, "utf8").digest();
  const given = Buffer.from(receipt.signature, "hex");
  assert(
    given.length === expected.length && timingSafeEqual(given, expected),
    "the signature of a delivery is not valid",
  );
  return Delivered.parse(JSON.parse(receipt.body));
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

async function story(): Promise<void> {
  const admin = clientOf(await token(options["admin-token"], "admin@acme.test"));
  const rep = clientOf(await token(options["rep-token"], "rep@acme.test"));
  const stranger = clientOf(await token(options["other-token"], "owner@globex.test"));
  step("an admin, a rep and a user of another company have tokens");

  receiver.listen(Number(options["receiver-port"]), "127.0.0.1");
  await once(receiver, "listening");
  const address = receiver.address();
  assert(typeof address === "object" && address !== null, "the receiver has no address");
  const url = options["receiver-url"] ?? `http://127.0.0.1:${address.port}/hook`;
  const registrations = [{ event: "prospect.status_changed" }];
  const created = await admin("POST", "/api/webhooks", { name: "Smoke test", url, registrations });
  assert(created.status === 201, `webhook: ${created.status} ${JSON.stringify(created.body)}`);
  const webhook = CreatedWebhook.parse(created.body);
  step(`the admin creates webhook ${webhook.id} to ${url} for prospect.status_changed`);

  const statuses = Statuses.parse((await rep("GET", "/api/statuses")).body).filter(({ isActive }) => isActive);
  const [first, second] = statuses;
  assert(first !== undefined && second !== undefined, "the company has fewer than two active statuses");
  const prospectIds: number[] = [];
  for (const { lat, lng, ...place } of addresses) {
    const answer = await rep("POST", "/api/prospects", {
      name: `Smoke ${place.address1}`,
      lat,
      lng,
      address: place,
      currentStatusId: first.id,
    });
    assert(answer.status === 201, `prospect: ${answer.status} ${JSON.stringify(answer.body)}`);
    prospectIds.push(Identified.parse(answer.body).id);
  }
  step(`the rep creates ${prospectIds.length} prospects with status ${first.value}`);

  const query = `bbox=-105.01,39.73,-104.94,39.76&status=${encodeURIComponent(first.value)}&pageSize=500`;
  const listed = Page.parse((await rep("GET", `/api/prospects?${query}`)).body);
  const found = new Set(listed.items.map(({ id }) => id));
  assert(
    prospectIds.every((id) => found.has(id)),
    "the list by bbox and status lacks a new prospect",
  );
  step(`the rep finds them in a list of ${listed.total} by bbox and status`);

  const [chosen = 0] = prospectIds;
  const patched = await rep("PATCH", `/api/prospects/${chosen}`, { currentStatusId: second.id });
  assert(patched.status === 200, `patch: ${patched.status}`);
  await received(1);
  const [receipt] = receipts;
  assert(receipt !== undefined, "no receipt");
  const { data } = verified(receipt, webhook.secretKey);
  const detail = Detail.parse((await rep("GET", `/api/prospects/${chosen}`)).body);
  assert(data.prospect.id === chosen && data.newStatus.value === second.value, "the delivery is about another record");
  assert(detail.statusHistory[0]?.id === data.statusHistoryId, "the delivery names another history entry");
  step(`the rep changes a status to ${second.value}; the receiver gets it and verifies the signature`);

  const foreign = await stranger("GET", `/api/prospects/${chosen}`);
  const foreignList = Page.parse((await stranger("GET", `/api/prospects?${query}`)).body);
  const foreignHook = await stranger("GET", `/api/webhooks/${webhook.id}`);
  assert(foreign.status === 404 && foreignHook.status === 404, "another company sees a record");
  assert(!foreignList.items.some(({ id }) => found.has(id)), "another company lists a prospect");
  step("the other company sees none of these records");

  receipts.length = 0;
  for (let i = 0; i < CHANGES; i++) {
    const id = prospectIds[i % prospectIds.length];
    const isEvenRound = Math.floor(i / prospectIds.length) % 2 === 0;
    // The rounds alternate between two statuses, so that each PATCH is a change. The chosen prospect begins with the second status,
    // and the others with the first.
    const status = (id === chosen) === isEvenRound ? first : second;
    const answer = await rep("PATCH", `/api/prospects/${id}`, { currentStatusId: status.id });
    assert(answer.status === 200, `patch: ${answer.status}`);
  }
  await received(CHANGES);
  const ids = new Set<string>();
  const delays = receipts.map((entry) => {
    const delivery = verified(entry, webhook.secretKey);
    ids.add(delivery.id);
    return entry.receivedAt - Date.parse(delivery.createdAt);
  });
  assert(ids.size === CHANGES && receipts.length === CHANGES, "a delivery arrived twice");
  delays.sort((a, b) => a - b);
  step(`${CHANGES} status changes, ${CHANGES} deliveries, none twice`);

  await admin("DELETE", `/api/webhooks/${webhook.id}`);
  for (const id of prospectIds) await rep("DELETE", `/api/prospects/${id}`);
  const gone = Page.parse((await rep("GET", `/api/prospects?${query}`)).body);
  assert(!gone.items.some(({ id }) => prospectIds.includes(id)), "a deleted prospect is still listed");
  step("the admin and the rep delete the webhook and the prospects");

  console.log(`commit -> receiver: median ${percentile(delays, 0.5)} ms, p99 ${percentile(delays, 0.99)} ms`);
}

try {
  await story();
} catch (error) {
  console.error(`failed after step ${stepNumber}: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  receiver.close();
  receiver.closeAllConnections();
}
