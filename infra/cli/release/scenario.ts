/** Sends the requests whose rows `record.ts` records. They create at least one row of nearly every type. */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";

/** Sends a request and returns the parsed body. Throws if the response is an error. */
export type Call = (method: string, path: string, body?: unknown) => Promise<unknown>;

const Identified = z.object({ id: z.number() });
const Upload = z.object({
  id: z.number(),
  upload: z.object({ url: z.string(), method: z.string(), headers: z.record(z.string(), z.string()) }),
});
const Job = z.object({ state: z.string() });
const Deliveries = z.object({ items: z.array(z.object({ id: z.string(), status: z.string() })) });

/** A text that is too long for an entry of the search index. The index stores it in a separate row. */
const LONG_TEXT = "Asked for a second offer after the hail. ".repeat(20);

const CSV = [
  "name,phone,email,lat,lng,address1,city,state,zip,status,tags,notes,sourceId",
  "Ida Import,303-555-0171,ida@example.com,39.74,-104.98,12 Elm St,Denver,CO,80203,Visited,Corner,Called twice,ext-1",
  "Ivo Import,303-555-0172,,39.75,-104.97,14 Elm St,Denver,CO,80203,,Corner,,ext-2",
  "Broken,,not-an-address,,,,,,,,,,",
].join("\r\n");

const square = [
  [-104.99, 39.74],
  [-104.97, 39.74],
  [-104.97, 39.72],
];

/**
 * Sends the requests as the owner of a new company. `receiver` is the URL of a webhook receiver that responds with success. Nothing listens
 * at the URL `closed`.
 */
export async function playScenario(call: Call, receiver: string, closed: string): Promise<void> {
  const make = async (path: string, body?: unknown): Promise<number> =>
    Identified.parse(await call("POST", path, body)).id;

  const status = await make("/api/statuses", { value: "Visited", color: "#1D4ED8" });
  const gone = await make("/api/statuses", { value: "Gone", color: "#1D4ED8" });
  const tag = await make("/api/tags", { value: "Corner", color: "#DC2626" });
  const name = { firstName: "Rea", lastName: "Rep" };
  const rep = await make("/api/users", { ...name, email: "rep@recorded.test", role: "sales" });
  const leaving = await make("/api/users", { ...name, email: "left@recorded.test", role: "admin" });
  const hooks = await webhooks(make, receiver, closed);
  const address = await make("/api/addresses", { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" });
  const full = await make("/api/prospects", {
    name: "Fay Full",
    phoneNumber: "+1 303 555 0142",
    secondaryPhoneNumber: "303-555-0143",
    emailAddress: "fay@example.com",
    lat: 39.7392,
    lng: -104.9903,
    address: { address1: "2 Main St", address2: "Suite 3", city: "Denver", state: "CO", zip: "80202" },
    currentStatusId: status,
    assignedToUserId: rep,
    source: "door",
    sourceId: "s-1",
    sourceCreatedAt: "2026-01-02T03:04:05.000Z",
    customFieldData: { roofAge: 14, insured: true, nested: { list: [1, "two", null] } },
  });
  const empty = await make("/api/prospects", {});
  const shared = await make("/api/prospects", { name: "Sam Shared", addressId: address });
  const deleted = await make("/api/prospects", { name: "Del Deleted" });

  await call("PATCH", `/api/prospects/${full}`, { currentStatusId: gone });
  await call("PATCH", `/api/prospects/${full}`, { currentStatusId: status, phoneNumber: null });
  await call("PATCH", `/api/prospects/${shared}`, {
    address: { address1: "3 Main St", city: "Denver", state: "CO", zip: "80202", formattedAddress: "The third house" },
  });
  await call("PUT", `/api/prospects/${full}/tags`, { tagIds: [tag] });
  await call("PATCH", `/api/addresses/${address}`, { address2: "Rear" });
  await call("DELETE", `/api/prospects/${deleted}`);

  const note = await make(`/api/prospects/${full}/notes`, { body: "Wants a quote." });
  await make(`/api/prospects/${full}/notes`, { body: LONG_TEXT });
  const removedNote = await make(`/api/prospects/${empty}/notes`, { body: "A mistake" });
  await call("PATCH", `/api/notes/${note}`, { body: "Wants a quote in July." });
  await call("DELETE", `/api/notes/${removedNote}`);

  // Four appointments are still in the future when a later release reads the recorded rows, and one has passed.
  const appointments: number[] = [];
  for (const day of ["2099-06-02", "2099-06-03", "2099-06-04", "2099-06-05", "2020-06-02"]) {
    const body = { title: `Visit of ${day}`, startAt: `${day}T15:00:00Z`, endAt: `${day}T16:00:00Z` };
    appointments.push(await make(`/api/prospects/${full}/appointments`, body));
  }
  await call("PATCH", `/api/appointments/${appointments[0]}`, { status: "completed" });
  await call("DELETE", `/api/appointments/${appointments[1]}`);

  const territory = await make("/api/territories", { name: "Centre", polygon: square, assignedToUserId: rep });
  const oldTerritory = await make("/api/territories", { name: "Old centre", polygon: square });
  await call("PATCH", `/api/territories/${territory}`, { name: "The centre" });
  await call("DELETE", `/api/territories/${oldTerritory}`);

  await call("POST", `/api/prospects/${full}/actions/${hooks.button}`);
  await call("DELETE", `/api/statuses/${gone}`);
  await call("DELETE", `/api/users/${leaving}`);

  const form = new FormData();
  form.set("file", new Blob([CSV], { type: "text/csv" }), "prospects.csv");
  await call("POST", "/api/prospects/import", form);
  await importJob(call);
  const exported = await make("/api/prospects/exports", { status: "Visited" });
  await untilCompleted(call, `/api/prospects/exports/${exported}`);
  await delivered(call, hooks.open);
  await call("POST", `/api/webhooks/${hooks.shut}/pause`);
}

async function webhooks(make: (path: string, body?: unknown) => Promise<number>, receiver: string, closed: string) {
  const open = await make("/api/webhooks", {
    name: "Open",
    url: receiver,
    registrations: [
      { event: "prospect.created" },
      { event: "prospect.status_changed", filter: { "newStatus.value": ["Visited"] } },
      { event: "note.created" },
    ],
  });
  const registrations = [{ event: "prospect.created" }];
  const shut = await make("/api/webhooks", { name: "Shut", url: closed, registrations });
  await make(`/api/webhooks/${shut}/registrations`, { event: "prospect.updated", delayMinutes: 60 });
  const button = await make(`/api/webhooks/${open}/registrations`, {
    event: "sale.made",
    triggerMode: "manual",
    manualTriggerButtonText: "Sold",
  });
  return { open, shut, button };
}

async function importJob(call: Call): Promise<void> {
  const { id, upload } = Upload.parse(await call("POST", "/api/prospects/imports", { bytes: Buffer.byteLength(CSV) }));
  const sent = await fetch(upload.url, { method: upload.method, headers: upload.headers, body: CSV });
  if (!sent.ok) throw new Error(`the upload was answered ${sent.status}: ${await sent.text()}`);
  await untilCompleted(call, `/api/prospects/imports/${id}`);
}

const untilCompleted = (call: Call, path: string): Promise<void> =>
  until(`${path} completes`, async () => Job.parse(await call("GET", path)).state === "completed");

const delivered = (call: Call, webhook: number): Promise<void> =>
  until("deliveries arrive", async () => {
    const { items } = Deliveries.parse(await call("GET", `/api/webhooks/${webhook}/deliveries`));
    return items.length >= 8 && items.every(({ status }) => status === "delivered");
  });

async function until(what: string, isDone: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < 60_000; waited += 200) {
    if (await isDone()) return;
    await wait(200);
  }
  throw new Error(`waited in vain until ${what}`);
}
