/**
 * Tests that every route sends a complete answer if its data has the maximum documented size. The local gateway answers 502 if an answer is
 * too large for Lambda, as API Gateway does.
 */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { answerBytes } from "#shared/http/answer.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import { newAppointmentWrites } from "#shared/prospects/appointments.ts";
import { insertNote } from "#shared/prospects/rows.ts";
import { StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";
import { StoredStatus } from "#shared/reference/schema.ts";
import { newStatusWrites } from "#shared/reference/statuses.ts";
import { deliveryItem, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { routes } from "../../infra/routes/routes.ts";
import { type Answer, baseUrl, send, tokenOf } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { bodyOf, Identified, present } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";

/**
 * The character that makes answers largest. It needs six bytes in JSON (`\u0001`). Lambda puts the answer into a JSON string, where the
 * backslash is escaped again, so it needs seven bytes there.
 */
const WIDE = "\u0001";
const wide = (characters: number, beginning = ""): string => beginning + WIDE.repeat(characters - beginning.length);

/**
 * Number of records of the maximum size in a long list. The answer with them exceeds Lambda's limit for buffered answers, so the service
 * must stream it.
 */
const STREAMED = 110;

let team: Team;
let token = "";

async function ask(method: string, path: string, body?: object, key?: string): Promise<Answer> {
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(!(body instanceof FormData) && { "Content-Type": "application/json" }),
    ...(key !== undefined && { "Idempotency-Key": key }),
  };
  return send(method, path, {
    headers,
    ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
  });
}

/**
 * Sends the request twice with the same idempotency key, and expects equal answers. The service reads the second answer from a row of the
 * table. Equal answers therefore show that the answer fits into a row.
 */
async function post(path: string, body: object = {}): Promise<Answer> {
  const key = randomUUID();
  const first = await ask("POST", path, body, key);
  const again = await ask("POST", path, body, key);
  expect([again.status, again.headers.get("idempotency-replayed")], again.text.slice(0, 300)).toEqual([
    first.status,
    "true",
  ]);
  expect(again.text).toBe(first.text);
  return first;
}

async function made(path: string, body: object): Promise<number> {
  const answer = await ask("POST", path, body);
  expect(answer.status, answer.text.slice(0, 300)).toBeLessThan(300);
  return z.parse(Identified, answer.body).id;
}

/**
 * Creates a bulk job with the maximum number of ids, and returns its id. No prospect has one of these ids. The job takes some seconds, so
 * that later requests find it running.
 */
const newJob = (): Promise<number> => {
  const ids = Array.from({ length: limits.bulkIds }, (_, i) => 2 ** 50 + i);
  return made("/api/prospects/bulk", { ids, action: { set: { currentStatusId: null } } });
};

async function inLanes<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  return results;
}

const Outputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
async function openLocalTable() {
  const outputs = Outputs.parse(await (await fetch(`${baseUrl()}/local/outputs`)).json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: outputs.DynamoDbEndpoint, region: "us-east-1", credentials });
  return openTable(outputs.TableName, client);
}

const text = (max: number): string => wide(max);
const address = {
  address1: text(limits.addressLine),
  address2: text(limits.addressLine),
  city: text(limits.addressLine),
  state: text(limits.addressLine),
  zip: text(limits.addressLine),
};
const appointment = {
  title: text(limits.appointmentTitle),
  location: text(limits.appointmentLocation),
  notes: text(limits.appointmentNotes),
  // The appointment is in the past, because a prospect's row contains copies of its future appointments and would become too large.
  startAt: "2020-01-01T00:00:00.000Z",
};
const polygon = Array.from({ length: limits.polygonPointsMax }, (_, i) => [-104 - i / 7e15, 39 + i / 9e15]);
const territory = { name: text(limits.name), polygon };
const name = text(limits.name);
const prospect = {
  name,
  phoneNumber: text(limits.phone),
  secondaryPhoneNumber: text(limits.phone),
  emailAddress: `a@${"b.".repeat(120)}test`,
  lat: -39.123456789,
  lng: -104.123456789,
  source: text(limits.source),
  sourceId: text(limits.sourceId),
  // Quotation marks make the answer longest. Each of them counts as two bytes for the maximum size of this field. The service and Lambda
  // each escape it, so it needs four bytes in Lambda's answer.
  customFieldData: { k: '"'.repeat((limits.customFieldBytes - 8) / 2) },
};
/**
 * A filter of the maximum size that matches the test's prospect. An answer with this prospect therefore also contains the manual trigger
 * and the text of its button. Most characters of the filter are quotation marks, because escaping makes them longest in JSON.
 */
const filter = (() => {
  const match = { "prospect.source": ["", prospect.source] };
  const room = limits.filterBytes - Buffer.byteLength(JSON.stringify(match));
  return { "prospect.source": ['"'.repeat(Math.floor(room / 2)), prospect.source] };
})();
const registration = {
  event: text(limits.eventName),
  filter,
  triggerMode: "manual",
  manualTriggerButtonText: text(limits.buttonText),
};
const webhook = (count: number) => ({
  name: text(limits.name),
  url: `http://127.0.0.1:9/${"x".repeat(limits.url - 19)}`,
  secretKey: randomUUID().repeat(7),
  registrations: Array.from({ length: count }, () => registration),
});
/** A CSV file with the maximum number of rows. Each row has as many columns with errors as the maximum file size allows. */
const badFile = (() => {
  const tags = Array.from({ length: limits.tagsPerProspect }, (_, i) => `${i},`).join(";");
  const row = `${"x".repeat(51)},@,x,x,?,?,"${tags.slice(0, 60)}"`;
  return `phone,email,lat,lng,status,assignedTo,tags\n${`${row}\n`.repeat(limits.importRows)}`;
})();

interface Stage {
  readonly prospect: number;
  readonly note: number;
  readonly appointment: number;
  readonly address: number;
  readonly territory: number;
  readonly webhook: number;
  readonly registration: number;
  readonly delivery: string;
  readonly import: number;
  readonly openImport: number;
  readonly export: number;
  readonly job: number;
  readonly user: number;
  readonly status: number;
  readonly tag: number;
  readonly spareTag: number;
}
let stage: Stage;

const SUMMARIES = limits.pageSizeMax;

/**
 * Returns an id that the service does not assign. Many notes, appointments and statuses are copies of one record, which are written directly
 * to the table. Requests for them would take fifteen seconds of processor time.
 */
const unusedId = (companyId: number, i: number): number => 2 ** 44 + companyId * 1_000 + i;

/** Returns the only row of a range. */
async function onlyRow(table: Table, range: Parameters<Table["query"]>[0]): Promise<Item> {
  const rows: Item[] = [];
  for await (const row of table.query(range)) rows.push(row);
  expect(rows).toHaveLength(1);
  return present(rows[0]);
}

/**
 * Gives each webhook in `to` the maximum number of registrations, which are copies of the registration `like`. They are written directly to
 * the table, because requests that create 1 850 registrations would take ten seconds of processor time.
 */
async function addRegistrations(
  table: Table,
  { companyId, from, like, to }: { companyId: number; from: number; like: number; to: readonly number[] },
): Promise<void> {
  const { pk: _pk, sk: _sk, ...row } = present(await table.get(keys.registration(companyId, from, like)));
  for (const [i, webhookId] of to.entries()) {
    const copies = Array.from({ length: limits.registrationsPerWebhook }, (_, j) => {
      // The service does not assign ids as large as this, so it is unused.
      const id = 2 ** 46 + companyId * 10_000 + i * limits.registrationsPerWebhook + j;
      return { ...keys.registration(companyId, webhookId, id), ...row, id, webhookId };
    });
    await table.batchPut(copies);
    const registrationCount = limits.registrationsPerWebhook;
    await table.write({ update: keys.webhook(companyId, webhookId), change: { set: { registrationCount } } });
  }
}

beforeAll(async () => {
  team = await newTeam();
  token = await tokenOf(team.owner.email);
  const table = await openLocalTable();
  const Me = z.object({ company: Identified });
  const companyId = bodyOf(await ask("GET", "/api/me"), 200, Me).company.id;

  const statuses = z.parse(z.array(Identified), (await ask("GET", "/api/statuses")).body).length;
  const status = await made("/api/statuses", { value: wide(limits.displayValue, "s0") });
  const likeStatus = StoredStatus.parse(await table.get(keys.status(companyId, status)));
  await inLanes(limits.statusesPerCompany - statuses - 3, (i) => {
    const copy = { ...likeStatus, id: unusedId(companyId, i), value: wide(limits.displayValue, `s${i + 1}`) };
    return table.transact(newStatusWrites(companyId, copy));
  });
  // The service reads the copies only after a status is written that increases the version of the names.
  await made("/api/statuses", { value: wide(limits.displayValue, "s") });
  // The import creates the tags, because one row can create 50 of them. One request for each tag would take longer.
  const tagged = Array.from({ length: (limits.tagsPerCompany - 1) / limits.tagsPerProspect }, (_, row) =>
    Array.from({ length: limits.tagsPerProspect }, (_, i) => wide(limits.displayValue, `t${row}-${i}`)),
  );
  const tagRows = tagged.map((values) => `1,2,"${values.join(";")}"`);
  const tagsFile = csvForm(`lat,lng,tags\n${tagRows.join("\n")}\n1,2,last\n`);
  bodyOf(await ask("POST", "/api/prospects/import", tagsFile), 200, Identified);
  const tags = z.parse(z.array(Identified), (await ask("GET", "/api/tags")).body).map(({ id }) => id);

  const prospectId = await made("/api/prospects", { ...prospect, address });
  await ask("PUT", `/api/prospects/${prospectId}/tags`, { tagIds: tags.slice(0, limits.tagsPerProspect) });
  const lines = Object.values(address).map((line) => `"${line}"`);
  const addressRows = Array.from({ length: limits.pageSizeMax }, () => lines.join());
  const addressFile = csvForm(`${Object.keys(address).join()}\n${addressRows.join("\n")}\n`);
  bodyOf(await ask("POST", "/api/prospects/import", addressFile), 200, Identified);

  const note = await made(`/api/prospects/${prospectId}/notes`, { body: text(limits.note) });
  const appointmentId = await made(`/api/prospects/${prospectId}/appointments`, appointment);
  const likeNote = StoredNote.parse(await onlyRow(table, attachedKeys.notes(companyId, prospectId)));
  const likeAppointment = StoredAppointment.parse(
    await onlyRow(table, attachedKeys.appointments(companyId, prospectId)),
  );
  await inLanes(STREAMED - 1, async (i) => {
    const id = unusedId(companyId, i);
    await table.transact(insertNote({ ...likeNote, id }));
    await table.transact(newAppointmentWrites({ ...likeAppointment, id }));
  });
  const territories = await inLanes(32, () => made("/api/territories", territory));
  await inLanes(20, () => made("/api/prospects", prospect));
  const users = await inLanes(20, (i) =>
    made("/api/users", { email: `${randomUUID()}${i}@x.test`, firstName: name, lastName: name, role: "sales" }),
  );

  const imported = await ask("POST", "/api/prospects/import", csvForm(badFile));
  const importId = bodyOf(imported, 200, Identified).id;
  const stored = StoredImport.parse(await table.get(keys.import(companyId, importId)));
  const rows: (Key & Item)[] = [];
  for (let i = 1; i <= SUMMARIES; i++) {
    // The service does not assign ids as large as this, so they cannot belong to records of other tests.
    const id = 2 ** 45 + companyId * 1_000 + i;
    rows.push({ ...keys.import(companyId, id), ...stored, id, state: "failed", failure: text(2 * limits.csvHeader) });
    rows.push({ ...keys.importEntry(companyId, id), type: "importEntry", id });
  }
  await table.batchPut(rows);

  const WithRegistrations = z.object({ id: z.number(), registrations: z.array(Identified) });
  const newWebhook = async (count: number) =>
    bodyOf(await ask("POST", "/api/webhooks", webhook(count)), 201, WithRegistrations);
  const [first, second] = [
    await newWebhook(limits.registrationsPerWebhook),
    await newWebhook(limits.registrationsPerWebhook),
  ];
  const button = present(first.registrations[0]).id;
  const more = await inLanes(limits.webhooksPerCompany - 3, () => newWebhook(0));
  await addRegistrations(table, { companyId, from: first.id, like: button, to: more.map(({ id }) => id) });
  // The company now has the maximum number of registrations. A request in `walk` creates another one, so this request deletes one.
  const spare = present(second.registrations[0]).id;
  bodyOf(await ask("DELETE", `/api/webhooks/${second.id}/registrations/${spare}`), 200, Identified);

  const Queued = z.object({ deliveryId: z.string() });
  const press = await ask("POST", `/api/prospects/${prospectId}/actions/${button}`);
  const { deliveryId } = bodyOf(press, 202, Queued);
  const delivery = StoredDelivery.parse(await table.get(keys.delivery(companyId, first.id, deliveryId)));
  const over = { ...delivery, state: "delivered" as const, attempt: 10, dueShard: undefined, sharedData: undefined };
  const ids = Array.from({ length: SUMMARIES }, (_, i) => `${deliveryId.slice(0, -4)}${String(i).padStart(4, "0")}`);
  await table.batchPut(ids.map((id) => deliveryItem({ ...over, id })));
  const [whole = ""] = ids;
  const ofQuotes = JSON.stringify({ data: '"'.repeat(limits.windowBodyBytes / 2 - 10) });
  await table.batchPut([
    deliveryItem({ ...over, id: whole, body: ofQuotes }),
    ...Array.from({ length: 100 }, (_, i) => ({
      ...keys.attempt(companyId, first.id, whole, i + 1),
      type: "attempt",
      number: i + 1,
      startedAt: delivery.createdAt,
      latencyMs: 1,
      status: 500,
      error: null,
      answer: text(limits.answerKeptBytes),
      expiresAt: delivery.expiresAt,
    })),
  ]);

  stage = {
    prospect: prospectId,
    note,
    appointment: appointmentId,
    address: z.parse(z.array(Identified), (await ask("GET", "/api/addresses?limit=1")).body)[0]?.id ?? 0,
    territory: present(territories[0]),
    webhook: second.id,
    registration: present(second.registrations[1]).id,
    delivery: whole,
    import: importId,
    openImport: await made("/api/prospects/imports", { dryRun: true }),
    export: await made("/api/prospects/exports", { search: text(limits.search) }),
    job: await newJob(),
    user: present(users[0]),
    status,
    tag: present(tags[0]),
    spareTag: present(tags.at(-1)),
  };
  deliveries = first.id;
}, 300_000);

let deliveries = 0;

const listOf = (answer: Answer): readonly unknown[] => z.parse(z.array(z.unknown()), answer.body);
const itemsOf = (answer: Answer): readonly unknown[] =>
  z.parse(z.object({ items: z.array(z.unknown()) }), answer.body).items;
const record = (answer: Answer): void => {
  z.parse(z.looseObject({ id: z.number() }), answer.body);
};

interface Visit {
  readonly ask: () => Promise<Answer>;
  readonly whole: (answer: Answer) => void;
}
const visit = (ask: () => Promise<Answer>, whole: (answer: Answer) => void = record): Visit => ({ ask, whole });
const read = (path: () => string, whole?: (answer: Answer) => void): Visit => visit(() => ask("GET", path()), whole);
const counts = (count: () => number) => (answer: Answer) => expect(listOf(answer)).toHaveLength(count());
const atLeast = (count: number) => (answer: Answer) => expect(listOf(answer).length).toBeGreaterThanOrEqual(count);

/** Number of operations in one request of the sync. Each operation creates a note. */
const OPERATIONS = 20;
const newNote = () => ({
  opId: randomUUID(),
  type: "note.create",
  id: stage.prospect,
  fields: { body: text(limits.note / 2) },
});

/**
 * The requests for all routes, in the order in which they are sent. A request may delete a record only if no request after it needs the
 * record.
 */
const walk: Readonly<Record<string, Visit>> = {
  "GET /openapi.json": read(
    () => "/openapi.json",
    ({ text }) => expect(JSON.parse(text)).toHaveProperty("paths"),
  ),
  "GET /openapi-3.0.json": read(
    () => "/openapi-3.0.json",
    ({ text }) => expect(JSON.parse(text)).toHaveProperty("paths"),
  ),
  "GET /health": read(
    () => "/health",
    ({ text }) => expect(JSON.parse(text)).toEqual({ status: "ok" }),
  ),
  "GET /docs": read(
    () => "/docs",
    ({ text }) => expect(text).toMatch(/<\/html>\s*$/),
  ),
  // The routes of the sign-in return no list. Their answers have a fixed size.
  "GET /api/session/login": visit(() => send("GET", "/api/session/login")),
  "GET /api/session/callback": visit(() => send("GET", "/api/session/callback")),
  "POST /api/session/refresh": visit(() => send("POST", "/api/session/refresh")),
  "POST /api/session/logout": visit(() => send("POST", "/api/session/logout")),
  "GET /api/me": read(
    () => "/api/me",
    ({ body }) => expect(body).toHaveProperty("company.id"),
  ),

  "POST /api/users": visit(() =>
    post("/api/users", { email: `${randomUUID()}@x.test`, firstName: name, lastName: name, role: "sales" }),
  ),
  "GET /api/users": read(() => "/api/users", atLeast(25)),
  "GET /api/users/{id}": read(() => `/api/users/${stage.user}`),
  "PATCH /api/users/{id}": visit(() => ask("PATCH", `/api/users/${stage.user}`, { role: "admin" })),

  "POST /api/statuses": visit(() => post("/api/statuses", { value: wide(limits.displayValue, "last") })),
  "GET /api/statuses": read(
    () => "/api/statuses",
    counts(() => limits.statusesPerCompany),
  ),
  "GET /api/statuses/{id}": read(() => `/api/statuses/${stage.status}`),
  "PATCH /api/statuses/{id}": visit(() => ask("PATCH", `/api/statuses/${stage.status}`, { sortOrder: 9 })),
  "POST /api/tags": visit(async () => {
    bodyOf(await ask("DELETE", `/api/tags/${stage.spareTag}`), 200, Identified);
    return post("/api/tags", { value: wide(limits.displayValue, "last") });
  }),
  "GET /api/tags": read(() => "/api/tags", atLeast(limits.tagsPerCompany - limits.tagsPerProspect)),

  "POST /api/prospects": visit(() => post("/api/prospects", { ...prospect, address })),
  "GET /api/prospects": read(
    () => `/api/prospects?pageSize=${limits.pageSizeMax}`,
    (answer) => {
      expect(itemsOf(answer)).toHaveLength(limits.pageSizeMax);
    },
  ),
  "POST /api/prospects/search": visit(
    () => ask("POST", "/api/prospects/search", { pageSize: limits.pageSizeMax + 1 }),
    (answer) => {
      expect(itemsOf(answer)).toHaveLength(limits.pageSizeMax);
    },
  ),
  "GET /api/prospects/clusters": read(
    () => "/api/prospects/clusters?bbox=-180,-90,180,90&zoom=22",
    (answer) => expect(itemsOf(answer).length).toBeGreaterThan(0),
  ),
  "GET /api/prospects/tiles/{z}/{x}/{y}": read(
    () => "/api/prospects/tiles/0/0/0.mvt",
    ({ bytes }) => expect(decodedTile(bytes).meta).toHaveLength(1),
  ),
  "GET /api/prospects/pins": read(() => "/api/prospects/pins", atLeast(20)),
  "GET /api/prospects/export": read(
    () => "/api/prospects/export",
    ({ text }) => expect(text).toMatch(/\r\n$/),
  ),
  "GET /api/prospects/{id}": read(
    () => `/api/prospects/${stage.prospect}`,
    ({ body }) => {
      const Detail = z.object({ appointments: z.array(z.unknown()), notes: z.array(z.unknown()) });
      const { appointments, notes } = z.parse(Detail, body);
      expect([appointments.length, notes.length]).toEqual([STREAMED, limits.notesInDetail]);
    },
  ),
  "PATCH /api/prospects/{id}": visit(() =>
    ask("PATCH", `/api/prospects/${stage.prospect}`, { phoneNumber: text(limits.phone - 1) }),
  ),
  "PUT /api/prospects/{id}/tags": visit(async () => {
    const tags = z.parse(z.array(Identified), (await ask("GET", "/api/tags")).body).map(({ id }) => id);
    return ask("PUT", `/api/prospects/${stage.prospect}/tags`, { tagIds: tags.slice(-limits.tagsPerProspect) });
  }),

  "GET /api/prospects/import/template.csv": read(
    () => "/api/prospects/import/template.csv",
    ({ text }) => expect(text).toMatch(/^\S/),
  ),
  "POST /api/prospects/import": visit(
    () => post("/api/prospects/import", csvForm(badFile)),
    ({ body }) => expect(body).toMatchObject({ skipped: limits.importRows, errors: { length: limits.importRows } }),
  ),
  "POST /api/prospects/imports": visit(() =>
    post("/api/prospects/imports", {
      mapping: Object.fromEntries(
        Array.from({ length: limits.mappedColumns }, (_, i) => [wide(limits.csvHeader, `${i}`), "name"]),
      ),
    }),
  ),
  "GET /api/prospects/imports": read(
    () => `/api/prospects/imports?limit=${SUMMARIES}`,
    (answer) => {
      expect(itemsOf(answer)).toHaveLength(SUMMARIES);
    },
  ),
  "GET /api/prospects/imports/{id}": read(
    () => `/api/prospects/imports/${stage.import}`,
    ({ body }) => expect(body).toMatchObject({ skipped: limits.importRows, errors: { length: limits.importRows } }),
  ),
  "POST /api/prospects/imports/{id}/cancel": visit(() => post(`/api/prospects/imports/${stage.openImport}/cancel`)),
  "POST /api/prospects/exports": visit(() => post("/api/prospects/exports", { search: text(limits.search) })),
  "GET /api/prospects/exports/{id}": read(() => `/api/prospects/exports/${stage.export}`),

  "GET /api/reports/activity": read(
    () => "/api/reports/activity?from=2026-01-01&to=2026-12-31&groupBy=user",
    ({ body }) => expect(body).toMatchObject({ groupBy: "user" }),
  ),
  "GET /api/changes": read(
    () => "/api/changes?limit=1000",
    (answer) => expect(itemsOf(answer).length).toBeGreaterThan(0),
  ),
  "POST /api/sync/operations": visit(
    () =>
      ask("POST", "/api/sync/operations", {
        deviceId: "tablet",
        operations: Array.from({ length: OPERATIONS }, newNote),
      }),
    ({ body }) => expect(body).toMatchObject({ results: { length: OPERATIONS } }),
  ),
  "POST /api/prospects/bulk": visit(
    () => post("/api/prospects/bulk", { filter: { all: true }, action: { delete: true }, dryRun: true }),
    ({ body }) => expect(body).toMatchObject({ samples: { length: limits.bulkSamples } }),
  ),
  "GET /api/jobs/{id}": read(() => `/api/jobs/${stage.job}`),
  "GET /api/jobs/{id}/results": read(
    () => `/api/jobs/${stage.job}/results?limit=${limits.pageSizeMax}`,
    (answer) => {
      expect(itemsOf(answer)).toHaveLength(limits.pageSizeMax);
    },
  ),
  "GET /api/jobs/{id}/results.ndjson": read(
    () => `/api/jobs/${stage.job}/results.ndjson`,
    ({ text }) => expect(text.split("\n")).toHaveLength(limits.bulkIds + 1),
  ),
  "GET /api/jobs/{id}/results.csv": read(
    () => `/api/jobs/${stage.job}/results.csv`,
    ({ text }) => expect(text.split("\r\n")).toHaveLength(limits.bulkIds + 2),
  ),
  "POST /api/jobs/{id}/pause": visit(async () => post(`/api/jobs/${await newJob()}/pause`)),
  "POST /api/jobs/{id}/resume": visit(async () => {
    const id = await newJob();
    await post(`/api/jobs/${id}/pause`);
    const answer = await post(`/api/jobs/${id}/resume`);
    // Cancels the job, because the test does not need its result, and its remaining work would take seconds of processor time.
    await ask("POST", `/api/jobs/${id}/cancel`);
    return answer;
  }),
  "POST /api/jobs/{id}/cancel": visit(async () => post(`/api/jobs/${await newJob()}/cancel`)),
  "POST /api/jobs/{id}/undo": visit(async () => {
    const id = await newJob();
    await post(`/api/jobs/${id}/cancel`);
    return post(`/api/jobs/${id}/undo`);
  }),
  "GET /api/jobs": read(
    () => "/api/jobs",
    (answer) => {
      expect(itemsOf(answer).length).toBeGreaterThan(4);
    },
  ),

  "POST /api/prospects/{id}/notes": visit(() =>
    post(`/api/prospects/${stage.prospect}/notes`, { body: text(limits.note) }),
  ),
  "GET /api/prospects/{id}/notes": read(
    () => `/api/prospects/${stage.prospect}/notes`,
    counts(() => STREAMED + OPERATIONS + 1),
  ),
  "GET /api/notes/{id}": read(() => `/api/notes/${stage.note}`),
  "PATCH /api/notes/{id}": visit(() => ask("PATCH", `/api/notes/${stage.note}`, { body: text(limits.note - 1) })),
  "DELETE /api/notes/{id}": visit(() => ask("DELETE", `/api/notes/${stage.note}`)),
  "POST /api/prospects/{id}/appointments": visit(() =>
    post(`/api/prospects/${stage.prospect}/appointments`, appointment),
  ),
  "GET /api/appointments": read(
    () => "/api/appointments?from=2020-01-01&to=2020-01-02",
    counts(() => STREAMED + 1),
  ),
  "GET /api/appointments/{id}": read(() => `/api/appointments/${stage.appointment}`),
  "PATCH /api/appointments/{id}": visit(() => ask("PATCH", `/api/appointments/${stage.appointment}`, { allDay: true })),
  "DELETE /api/appointments/{id}": visit(() => ask("DELETE", `/api/appointments/${stage.appointment}`)),
  "GET /api/prospects/{id}/actions": read(
    () => `/api/prospects/${stage.prospect}/actions`,
    // One webhook and one registration are missing to the maximum, because requests after this one create them.
    counts(() => (limits.webhooksPerCompany - 1) * limits.registrationsPerWebhook - 1),
  ),
  "POST /api/prospects/{id}/actions/{registrationId}": visit(
    () => post(`/api/prospects/${stage.prospect}/actions/${stage.registration}`),
    ({ body }) => expect(body).toHaveProperty("deliveryId"),
  ),

  "POST /api/addresses": visit(() =>
    post("/api/addresses", { ...address, formattedAddress: text(4 * limits.addressLine) }),
  ),
  "GET /api/addresses": read(
    () => `/api/addresses?limit=${limits.pageSizeMax}`,
    counts(() => limits.pageSizeMax),
  ),
  "GET /api/addresses/{id}": read(() => `/api/addresses/${stage.address}`),
  "PATCH /api/addresses/{id}": visit(() => ask("PATCH", `/api/addresses/${stage.address}`, { zip: "1" })),

  "POST /api/territories": visit(() => post("/api/territories", territory)),
  "GET /api/territories": read(
    () => "/api/territories",
    counts(() => 33),
  ),
  "GET /api/territories.geojson": read(
    () => "/api/territories.geojson",
    ({ body }) => expect(body).toMatchObject({ features: { length: 33 } }),
  ),
  "POST /api/territories/import": visit(
    () => {
      // Each feature is invalid, and the error message for it has the maximum length.
      const geometry = { type: "x".repeat(300), coordinates: [] };
      const features = Array.from({ length: limits.territoryFeatures }, () => ({ type: "Feature", geometry }));
      return post("/api/territories/import", { type: "FeatureCollection", features });
    },
    ({ body }) => expect(body).toMatchObject({ results: { length: limits.territoryFeatures } }),
  ),
  "GET /api/territories/tiles/{z}/{x}/{y}": read(
    () => "/api/territories/tiles/0/0/0.mvt",
    // The polygons of this company are too small to be visible in this tile, so the tile is empty.
    ({ status }) => expect(status).toBe(204),
  ),
  "GET /api/territories/{id}": read(
    () => `/api/territories/${stage.territory}`,
    ({ body }) => {
      expect(body).toMatchObject({ polygon: { length: limits.polygonPointsMax } });
    },
  ),
  "GET /api/territories/{id}/stats": read(
    () => `/api/territories/${stage.territory}/stats`,
    ({ body }) => expect(body).toHaveProperty("byAssignee"),
  ),
  "POST /api/territories/{id}/runs": visit(
    () => post(`/api/territories/${stage.territory}/runs`, { mode: "unassign", dryRun: true }),
    ({ body }) => expect(body).toHaveProperty("samples"),
  ),
  "PATCH /api/territories/{id}": visit(() =>
    ask("PATCH", `/api/territories/${stage.territory}`, { totalProperties: 9 }),
  ),
  "DELETE /api/territories/{id}": visit(() => ask("DELETE", `/api/territories/${stage.territory}`)),

  "POST /api/webhooks": visit(() => post("/api/webhooks", webhook(limits.registrationsPerWebhook))),
  "POST /api/webhooks/{id}/registrations": visit(() =>
    post(`/api/webhooks/${stage.webhook}/registrations`, registration),
  ),
  "GET /api/webhooks": read(
    () => "/api/webhooks",
    (answer) => {
      const Listed = z.array(z.object({ registrations: z.array(z.object({ filter: z.unknown() })) }));
      const found = z.parse(Listed, answer.body);
      expect(found).toHaveLength(limits.webhooksPerCompany);
      for (const { registrations } of found) {
        expect(registrations).toHaveLength(limits.registrationsPerWebhook);
        for (const { filter: shown } of registrations) expect(shown).toEqual(filter);
      }
    },
  ),
  "GET /api/webhooks/event-types": read(() => "/api/webhooks/event-types", atLeast(10)),
  "GET /api/webhooks/{id}": read(() => `/api/webhooks/${stage.webhook}`),
  "PATCH /api/webhooks/{id}": visit(() =>
    ask("PATCH", `/api/webhooks/${stage.webhook}`, { name: text(limits.name - 1) }),
  ),
  "POST /api/webhooks/{id}/rotate-secret": visit(() => post(`/api/webhooks/${stage.webhook}/rotate-secret`)),
  "POST /api/webhooks/{id}/pause": visit(() => post(`/api/webhooks/${stage.webhook}/pause`)),
  "POST /api/webhooks/{id}/resume": visit(() => post(`/api/webhooks/${stage.webhook}/resume`)),
  "POST /api/webhooks/{id}/test": visit(
    () => post(`/api/webhooks/${stage.webhook}/test`),
    ({ body }) => expect(body).toHaveProperty("deliveryId"),
  ),
  "POST /api/webhooks/{id}/replay": visit(
    () => post(`/api/webhooks/${stage.webhook}/replay`, { from: "2026-01-01" }),
    ({ body }) => expect(body).toHaveProperty("count"),
  ),
  "GET /api/webhooks/{id}/registrations": read(
    () => `/api/webhooks/${stage.webhook}/registrations`,
    counts(() => limits.registrationsPerWebhook),
  ),
  "GET /api/webhooks/{id}/registrations/{registrationId}": read(
    () => `/api/webhooks/${stage.webhook}/registrations/${stage.registration}`,
  ),
  "PATCH /api/webhooks/{id}/registrations/{registrationId}": visit(() =>
    ask("PATCH", `/api/webhooks/${stage.webhook}/registrations/${stage.registration}`, { delayMinutes: 5 }),
  ),
  "GET /api/webhooks/{id}/deliveries": read(
    () => `/api/webhooks/${deliveries}/deliveries?limit=${SUMMARIES}`,
    (answer) => expect(itemsOf(answer)).toHaveLength(SUMMARIES),
  ),
  "GET /api/webhooks/{id}/deliveries/{deliveryId}": read(
    () => `/api/webhooks/${deliveries}/deliveries/${stage.delivery}`,
    ({ body }) => {
      const { attempts, body: sent } = z.parse(z.object({ attempts: z.array(z.unknown()), body: z.string() }), body);
      expect(attempts).toHaveLength(100);
      expect(sent.length).toBeGreaterThan(limits.windowBodyBytes - 100);
    },
  ),
  "POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver": visit(
    () => post(`/api/webhooks/${deliveries}/deliveries/${stage.delivery}/redeliver`),
    ({ body }) => expect(body).toHaveProperty("deliveryId"),
  ),
  "DELETE /api/webhooks/{id}/registrations/{registrationId}": visit(() =>
    ask("DELETE", `/api/webhooks/${stage.webhook}/registrations/${stage.registration}`),
  ),
  "DELETE /api/webhooks/{id}": visit(() => ask("DELETE", `/api/webhooks/${stage.webhook}`)),

  "GET /api/tags/{id}": read(() => `/api/tags/${stage.tag}`),
  "PATCH /api/tags/{id}": visit(() => ask("PATCH", `/api/tags/${stage.tag}`, { color: "#123456" })),
  "DELETE /api/tags/{id}": visit(() => ask("DELETE", `/api/tags/${stage.tag}`)),
  "DELETE /api/statuses/{id}": visit(() => ask("DELETE", `/api/statuses/${stage.status}`)),
  "DELETE /api/users/{id}": visit(() => ask("DELETE", `/api/users/${stage.user}`)),
  "DELETE /api/prospects/{id}": visit(() => ask("DELETE", `/api/prospects/${stage.prospect}`)),
  "POST /api/prospects/imports/{id}/undo": visit(() => post(`/api/prospects/imports/${stage.import}/undo`)),
};

test("the list of requests has every route, and no other", () => {
  const declared = routes.map(({ method, path }) => `${method} ${path}`);
  expect(Object.keys(walk).toSorted()).toEqual(declared.toSorted());
});

test.each(Object.entries(walk))("%s", async (route, { ask, whole }) => {
  const answer = await ask();
  expect(
    route.includes(" /api/session/") ? [302, 400, 403] : [200, 201, 202, 204],
    `${answer.status} ${answer.text.slice(0, 300)}`,
  ).toContain(answer.status);
  if (answer.status < 300) whole(answer);
  const isStreamed = routes.some(({ method, path, streamed }) => streamed && `${method} ${path}` === route);
  if (!isStreamed) expect(answerBytes(answer.text)).toBeLessThan(limits.bufferedAnswerBytes);
});
