/** Records rows of nearly every type as this release stores them, because tests check that the next release can read them. */
import { setTimeout as wait } from "node:timers/promises";
import { type AttributeValue, paginateScan } from "@aws-sdk/client-dynamodb";
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { documentsAt, dynamoDbAt } from "../../local/servers/clients.ts";
import { startLocal } from "../../local/service.ts";

const OWNER = "owner@recorded.test";
/** Blocks of 128 ids to skip, so that a test can add the recorded rows to any test table without a conflict of ids. */
const FIRST_BLOCK = 70_000;

/** Returns the rows of a company that `sendRequests` has filled, in DynamoDB's JSON format, with binary values as base64. */
export async function recordCompany() {
  const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1 });
  try {
    const { TableName, DynamoDbEndpoint } = service.outputs;
    const table = openTable(TableName, documentsAt(DynamoDbEndpoint));
    await table.write({ update: keys.idCounter(), change: { add: { nextBlock: FIRST_BLOCK } } });
    const owner = { email: OWNER, firstName: "Ora", lastName: "Owner", sub: OWNER };
    const companyId = (await createCompany(contextOn(table), { name: "Recorded", owner })).company.id;
    const token = await service.tokenOf(OWNER);
    if (token === undefined) throw new Error(`no token for ${OWNER}`);
    await sendRequests(callAs(service.url, token));
    const rows: string[] = [];
    for await (const { Items = [] } of paginateScan({ client: dynamoDbAt(DynamoDbEndpoint) }, { TableName })) {
      rows.push(...Items.filter((item) => isOwn(item, companyId)).map(plain));
    }
    return { companyId, owner: OWNER, rows: rows.sort().map((row): unknown => JSON.parse(row)) };
  } finally {
    await service.stop();
  }
}

function isOwn({ pk, companyId }: Record<string, AttributeValue>, id: number): boolean {
  const key = String(pk?.S);
  const isShared = /^[ES]#/.test(key) && (companyId?.N === String(id) || key.endsWith("@recorded.test"));
  return isShared || key.startsWith(`C#${id}#`);
}

const plain = (item: Record<string, AttributeValue>): string =>
  JSON.stringify(item, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );

type Call = (method: string, path: string, body?: unknown) => Promise<unknown>;

const callAs =
  (base: string, token: string): Call =>
  async (method, path, body) => {
    const isFile = body instanceof FormData;
    const headers = { Authorization: `Bearer ${token}`, ...(!isFile && { "Content-Type": "application/json" }) };
    const sent = isFile ? body : JSON.stringify(body);
    const answer = await fetch(`${base}${path}`, { method, headers, ...(sent !== undefined && { body: sent }) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
    return text === "" ? undefined : JSON.parse(text);
  };

const Identified = z.object({ id: z.number() });
const Deliveries = z.object({ items: z.array(z.object({ attemptCount: z.number() })) });

/** A text that is too long for an entry of the search index. The index stores it in a separate row. */
const LONG_TEXT = "Asked for a second offer after the hail. ".repeat(20);
const CSV = [
  "name,phone,email,lat,lng,address1,city,state,zip,status,tags,notes,sourceId",
  "Ida Import,303-555-0171,ida@example.com,39.74,-104.98,12 Elm St,Denver,CO,80203,Visited,Corner,Called twice,ext-1",
  "Ivo Import,303-555-0172,,39.75,-104.97,14 Elm St,Denver,CO,80203,,Corner,,ext-2",
  "Broken,,not-an-address,,,,,,,,,,",
].join("\r\n");
const home = { city: "Denver", state: "CO", zip: "80202" };
const corners = [
  [-104.99, 39.74],
  [-104.97, 39.74],
  [-104.97, 39.72],
];

async function sendRequests(call: Call): Promise<void> {
  const make = async (path: string, body?: unknown): Promise<number> =>
    Identified.parse(await call("POST", path, body)).id;

  const status = await make("/api/statuses", { value: "Visited", color: "#1D4ED8" });
  const gone = await make("/api/statuses", { value: "Gone", color: "#1D4ED8" });
  const tag = await make("/api/tags", { value: "Corner", color: "#DC2626" });
  const name = { firstName: "Rea", lastName: "Rep" };
  const rep = await make("/api/users", { ...name, email: "rep@recorded.test", role: "sales" });
  // Nothing listens on port 9, so the deliveries wait for their next attempt.
  const hook = await make("/api/webhooks", {
    ...{ name: "Shut", url: "http://127.0.0.1:9/hook" },
    registrations: [
      { event: "prospect.created" },
      { event: "prospect.status_changed", filter: { "newStatus.value": ["Visited"] } },
      { event: "prospect.updated", delayMinutes: 60 },
    ],
  });
  const button = { event: "sale.made", triggerMode: "manual", manualTriggerButtonText: "Sold" };
  const trigger = await make(`/api/webhooks/${hook}/registrations`, button);

  const address = await make("/api/addresses", { ...home, address1: "1 Main St" });
  const full = await make("/api/prospects", {
    ...{
      name: "Fay Full",
      phoneNumber: "+1 303 555 0142",
      emailAddress: "fay@example.com",
      lat: 39.7392,
      lng: -104.99,
    },
    ...{ address: { ...home, address1: "2 Main St" }, currentStatusId: status, assignedToUserId: rep },
    ...{ source: "door", sourceId: "s-1", sourceCreatedAt: "2026-01-02T03:04:05.000Z" },
    customFieldData: { roofAge: 14, insured: true, nested: { list: [1, "two", null] } },
  });
  const empty = await make("/api/prospects", {});
  await make("/api/prospects", { name: "Sam Shared", addressId: address });
  await call("PATCH", `/api/prospects/${full}`, { currentStatusId: gone });
  await call("PATCH", `/api/prospects/${full}`, { currentStatusId: status, phoneNumber: null });
  await call("PUT", `/api/prospects/${full}/tags`, { tagIds: [tag] });
  await call("DELETE", `/api/prospects/${await make("/api/prospects", { name: "Del Deleted" })}`);
  await make(`/api/prospects/${full}/notes`, { body: LONG_TEXT });
  await call("DELETE", `/api/notes/${await make(`/api/prospects/${empty}/notes`, { body: "A mistake" })}`);
  // Two appointments are still in the future when a later release reads the recorded rows, and one has passed.
  for (const day of ["2099-06-02", "2099-06-03", "2020-06-02"]) {
    const times = { startAt: `${day}T15:00:00Z`, endAt: `${day}T16:00:00Z` };
    await make(`/api/prospects/${full}/appointments`, { title: `Visit of ${day}`, ...times });
  }
  await make("/api/territories", { name: "Centre", polygon: corners, assignedToUserId: rep });
  await call("POST", `/api/prospects/${full}/actions/${trigger}`);
  await call("DELETE", `/api/statuses/${gone}`);
  const form = new FormData();
  form.set("file", new Blob([CSV], { type: "text/csv" }), "prospects.csv");
  await call("POST", "/api/prospects/import", form);
  await make("/api/prospects/exports", { status: "Visited" });
  for (let attempted = 0; attempted < 3; await wait(200)) {
    const { items } = Deliveries.parse(await call("GET", `/api/webhooks/${hook}/deliveries`));
    attempted = items.filter(({ attemptCount }) => attemptCount > 0).length;
  }
  await call("POST", `/api/webhooks/${hook}/pause`);
}
