/**
 * Adds three webhooks to the first demo company through the API, so that their deliveries are real. One receiver responds with 204, one
 * responds with 500, and the URL of the third refuses the connection.
 */
import * as z from "zod/mini";
import { LocalError } from "../servers/error.ts";

/** The local service serves two receivers. The last part of the path is the status with which the receiver responds. */
export const RECEIVER_PATH = "/local/receivers/";

interface Service {
  readonly url: string;
  tokenOf(email: string): Promise<string | undefined>;
}

/** Nothing listens on port 9 ("discard"), so connections to it are refused. */
const REFUSING_URL = "http://127.0.0.1:9/hooks";

const NAMES = { works: "CRM", fails: "Data warehouse", refuses: "Text messages" } as const;

/** The statuses that a demo rep sets, so that the webhooks receive events. */
const VISITS = ["Interested", "Not Home", "Sold", "Appointment Set"] as const;

const Named = z.array(z.object({ id: z.int(), name: z.string() }));
const Statuses = z.array(z.object({ id: z.int(), value: z.string() }));
const Prospects = z.object({ items: z.array(z.object({ id: z.int() })) });
const Made = z.object({ id: z.int() });

/** Adds the webhooks and causes some events. Does nothing if the webhooks exist, so a restart adds no second set. */
export async function addDemoWebhooks(service: Service): Promise<void> {
  const admin = await callerOf(service, "admin@acme.test");
  const existing = z.parse(Named, await admin("GET", "/api/webhooks"));
  if (existing.some(({ name }) => name === NAMES.fails)) return;
  const changed = { event: "prospect.status_changed" };
  const sold = { ...changed, filter: { "newStatus.value": ["Sold", "Interested"] } };
  const receiver = (status: number): string => `${service.url}${RECEIVER_PATH}${status}`;
  const webhooks = [
    { name: NAMES.works, url: receiver(204), registrations: [changed, { event: "note.created" }] },
    { name: NAMES.fails, url: receiver(500), registrations: [changed] },
    { name: NAMES.refuses, url: REFUSING_URL, registrations: [sold] },
  ];
  for (const body of webhooks) {
    const { id } = z.parse(Made, await admin("POST", "/api/webhooks", body));
    await admin("POST", `/api/webhooks/${id}/test`);
  }
  await visitProspects(await callerOf(service, "rep@acme.test"));
}

async function visitProspects(rep: Call): Promise<void> {
  const statuses = z.parse(Statuses, await rep("GET", "/api/statuses"));
  const { items } = z.parse(Prospects, await rep("GET", `/api/prospects?status=New&pageSize=${VISITS.length}`));
  for (const [index, { id }] of items.entries()) {
    const currentStatusId = statuses.find(({ value }) => value === VISITS[index])?.id;
    await rep("PATCH", `/api/prospects/${id}`, { currentStatusId });
    await rep("POST", `/api/prospects/${id}/notes`, { body: "Visited today." });
  }
}

type Call = (method: string, path: string, body?: object) => Promise<unknown>;

async function callerOf({ url, tokenOf }: Service, email: string): Promise<Call> {
  const token = await tokenOf(email);
  if (token === undefined) throw new LocalError(`--webhooks needs the demo user ${email}; start with --fresh`);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return async (method, path, body) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok)
      throw new LocalError(`the demo webhooks cannot be added: ${method} ${path}: ${await answer.text()}`);
    return answer.json();
  };
}
