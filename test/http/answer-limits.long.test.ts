/**
 * Tests that every route sends a complete answer if its data has the maximum documented size. The local gateway answers 502 if an answer is
 * too large for Lambda, as API Gateway does.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { answerBytes } from "#shared/http/answer.ts";
import * as limits from "#shared/limits.ts";
import { routes } from "../../infra/routes/routes.ts";
import { type Answer, send } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import * as largest from "./answer-limits-records.ts";
import { newNote, OPERATIONS, STREAMED, SUMMARIES, text, wide } from "./answer-limits-records.ts";
import { newStage, requestsOf } from "./answer-limits-stage.ts";

const requests = requestsOf((await newTeam()).owner);
const stage = await newStage(requests);

const idsOf = async (path: string): Promise<number[]> =>
  z.parse(z.array(Identified), (await requests.ask("GET", path)).body).map(({ id }) => id);

type Check = (answer: Answer) => void;
const isRecord: Check = ({ body }) => void z.parse(Identified, body);
const matches =
  (expected: object): Check =>
  ({ body }) =>
    expect(body).toMatchObject(expected);
const counts = (length: number): Check => matches({ length });
const items = (length: number): Check => matches({ items: { length } });
const atLeast =
  (count: number): Check =>
  ({ body }) =>
    expect(z.parse(z.array(z.unknown()), body).length).toBeGreaterThanOrEqual(count);
const moreItemsThan =
  (count: number): Check =>
  ({ body }) =>
    expect(z.parse(z.object({ items: z.array(z.unknown()) }), body).items.length).toBeGreaterThan(count);
const has =
  (field: string): Check =>
  ({ body }) =>
    expect(body).toHaveProperty(field);

interface Visit {
  /** Returns the id for the path. By default, the path gets the id that `stage` has under the name of the collection. */
  readonly id?: () => number | Promise<number>;
  readonly query?: string;
  readonly body?: object | (() => object | Promise<object>);
  /** `unkeyed` sends no idempotency key with a POST, and `bare` sends no token either. */
  readonly how?: "unkeyed" | "bare";
  /** Checks that the answer is whole. By default, the answer must be a record. */
  readonly whole?: Check;
}

const errors = { skipped: limits.importRows, errors: { length: limits.importRows } };
const ofDelivery = (): number => stage.webhookOfDelivery;
/** The bulk job that the requests pause, resume and cancel. */
let job = 0;

/** The requests for all routes, in the order in which they are sent. A request may delete a record only if no later request needs it. */
const walk: Readonly<Record<string, Visit>> = {
  "GET /openapi.json": { whole: has("paths") },
  "GET /openapi-3.0.json": { whole: has("paths") },
  "GET /health": { whole: has("status") },
  "POST /health/webhooks": { body: { text: text(limits.note) }, how: "bare", whole: has("sha256") },
  "GET /docs": { whole: (answer) => expect(answer.text).toMatch(/<\/html>\s*$/) },
  // The routes of the sign-in return no list. Their answers have a fixed size, so they need no large data.
  "GET /api/session/login": { how: "bare" },
  "GET /api/session/callback": { how: "bare" },
  "POST /api/session/refresh": { how: "bare" },
  "POST /api/session/logout": { how: "bare" },
  "GET /api/me": { whole: has("company.id") },

  "POST /api/users": {
    body: { email: `${randomUUID()}@x.test`, firstName: largest.name, lastName: largest.name, role: "sales" },
  },
  "GET /api/users": { whole: atLeast(25) },
  "GET /api/users/{id}": {},
  "PATCH /api/users/{id}": { body: { role: "admin" } },

  "POST /api/service-accounts": { body: largest.account },
  "GET /api/service-accounts": { whole: counts(limits.serviceAccounts) },
  "GET /api/service-accounts/{id}": {},
  "PATCH /api/service-accounts/{id}": { body: { name: largest.name } },
  "POST /api/service-accounts/{id}/keys": { body: largest.key, whole: has("key") },
  "GET /api/service-accounts/{id}/keys": { whole: counts(limits.keysPerAccount) },
  "POST /api/service-accounts/{id}/keys/{keyId}/take-over": { whole: has("id") },
  "POST /api/service-accounts/{id}/keys/{keyId}/rotate": { body: { overlapSeconds: 60 }, whole: has("key") },
  "DELETE /api/service-accounts/{id}/keys/{keyId}": { whole: has("id") },
  "DELETE /api/service-accounts/{id}": {},

  "POST /api/statuses": { body: { value: wide(limits.displayValue, "last") } },
  "GET /api/statuses": { whole: counts(limits.statusesPerCompany) },
  "GET /api/statuses/{id}": {},
  "PATCH /api/statuses/{id}": { body: { sortOrder: 9 } },
  "POST /api/tags": {
    body: async () => {
      bodyOf(await requests.ask("DELETE", `/api/tags/${stage.spareTag}`), 200, Identified);
      return { value: wide(limits.displayValue, "last") };
    },
  },
  "GET /api/tags": { whole: atLeast(limits.tagsPerCompany) },

  "POST /api/prospects": { body: { ...largest.prospect, address: largest.address } },
  "GET /api/prospects": { query: `pageSize=${limits.pageSizeMax}`, whole: items(limits.pageSizeMax) },
  "POST /api/prospects/search": {
    ...{ body: { pageSize: limits.pageSizeMax + 1 }, how: "unkeyed" },
    whole: items(limits.pageSizeMax),
  },
  "GET /api/prospects/clusters": { query: "bbox=-180,-90,180,90&zoom=22", whole: moreItemsThan(0) },
  "GET /api/prospects/tiles/{z}/{x}/{y}": { whole: ({ bytes }) => expect(decodedTile(bytes).meta).toHaveLength(1) },
  "GET /api/prospects/pins": { whole: atLeast(20) },
  "GET /api/prospects/export": { whole: (answer) => expect(answer.text).toMatch(/\r\n$/) },
  "GET /api/prospects/{id}": {
    whole: matches({ appointments: { length: STREAMED }, notes: { length: limits.notesInDetail } }),
  },
  "PATCH /api/prospects/{id}": { body: { phoneNumber: text(limits.phone - 1) } },
  "PUT /api/prospects/{id}/tags": {
    body: async () => ({ tagIds: (await idsOf("/api/tags")).slice(-limits.tagsPerProspect) }),
  },

  "GET /api/prospects/import/template.csv": { whole: (answer) => expect(answer.text).toMatch(/^\S/) },
  "POST /api/prospects/import": { body: csvForm(largest.badFile), whole: matches(errors) },
  "POST /api/prospects/imports": {
    body: {
      mapping: Object.fromEntries(
        Array.from({ length: limits.mappedColumns }, (_, i) => [wide(limits.csvHeader, `${i}`), "name"]),
      ),
    },
  },
  "GET /api/prospects/imports": { query: `limit=${SUMMARIES}`, whole: items(SUMMARIES) },
  "GET /api/prospects/imports/{id}": { whole: matches(errors) },
  "POST /api/prospects/imports/{id}/cancel": { id: () => stage.openImport },
  "POST /api/prospects/exports": { body: { search: text(limits.search) } },
  "GET /api/prospects/exports/{id}": {},

  "GET /api/reports/activity": {
    query: "from=2026-01-01&to=2026-12-31&groupBy=user",
    whole: matches({ groupBy: "user" }),
  },
  "GET /api/changes": { query: "limit=1000", whole: moreItemsThan(0) },
  "POST /api/sync/operations": {
    body: () => ({
      deviceId: "tablet",
      operations: Array.from({ length: OPERATIONS }, () => newNote(stage.prospects)),
    }),
    how: "unkeyed",
    whole: matches({ results: { length: OPERATIONS } }),
  },
  "POST /api/prospects/bulk": {
    body: { filter: { all: true }, action: { delete: true }, dryRun: true },
    whole: matches({ samples: { length: limits.bulkSamples } }),
  },
  "GET /api/jobs/{id}": {},
  "GET /api/jobs/{id}/results": { query: `limit=${limits.pageSizeMax}`, whole: items(limits.pageSizeMax) },
  "GET /api/jobs/{id}/results.ndjson": {
    whole: (answer) => expect(answer.text.split("\n")).toHaveLength(limits.bulkIds + 1),
  },
  "GET /api/jobs/{id}/results.csv": {
    whole: (answer) => expect(answer.text.split("\r\n")).toHaveLength(limits.bulkIds + 2),
  },
  "POST /api/jobs/{id}/pause": {
    id: async () => {
      job = await requests.newJob();
      return job;
    },
  },
  "POST /api/jobs/{id}/resume": { id: () => job },
  "POST /api/jobs/{id}/cancel": { id: () => job },
  "POST /api/jobs/{id}/undo": {
    id: async () => {
      const id = await requests.newJob();
      await requests.post(`/api/jobs/${id}/cancel`);
      return id;
    },
  },
  "GET /api/jobs": { whole: moreItemsThan(3) },

  "POST /api/prospects/{id}/notes": { body: { body: text(limits.note) } },
  "GET /api/prospects/{id}/notes": { whole: counts(STREAMED + OPERATIONS + 1) },
  "GET /api/notes/{id}": {},
  "PATCH /api/notes/{id}": { body: { body: text(limits.note - 1) } },
  "DELETE /api/notes/{id}": {},
  "POST /api/prospects/{id}/appointments": { body: largest.appointment },
  "GET /api/appointments": { query: "from=2020-01-01&to=2020-01-02", whole: counts(STREAMED + 1) },
  "GET /api/appointments/{id}": {},
  "PATCH /api/appointments/{id}": { body: { allDay: true } },
  "DELETE /api/appointments/{id}": {},
  // The company has one webhook less than the maximum, and one of its webhooks has one registration less, because later requests create
  // one webhook and one registration.
  "GET /api/prospects/{id}/actions": {
    whole: counts((limits.webhooksPerCompany - 1) * limits.registrationsPerWebhook - 1),
  },
  "POST /api/prospects/{id}/actions/{registrationId}": { whole: has("deliveryId") },

  "POST /api/addresses": { body: { ...largest.address, formattedAddress: text(4 * limits.addressLine) } },
  "GET /api/addresses": { query: `limit=${limits.pageSizeMax}`, whole: counts(limits.pageSizeMax) },
  "GET /api/addresses/{id}": {},
  "PATCH /api/addresses/{id}": { body: { zip: "1" } },

  "POST /api/territories": { body: largest.territory },
  "GET /api/territories": { whole: counts(33) },
  "GET /api/territories.geojson": { whole: matches({ features: { length: 33 } }) },
  "POST /api/territories/import": {
    body: () => {
      // Each feature is invalid, and the error message for it has the maximum length.
      const geometry = { type: "x".repeat(300), coordinates: [] };
      const features = Array.from({ length: limits.territoryFeatures }, () => ({ type: "Feature", geometry }));
      return { type: "FeatureCollection", features };
    },
    whole: matches({ results: { length: limits.territoryFeatures } }),
  },
  // The polygons of this company are too small to be visible in this tile, so the tile is empty.
  "GET /api/territories/tiles/{z}/{x}/{y}": { whole: ({ status }) => expect(status).toBe(204) },
  "GET /api/territories/{id}": { whole: matches({ polygon: { length: limits.polygonPointsMax } }) },
  "GET /api/territories/{id}/stats": { whole: has("byAssignee") },
  "POST /api/territories/{id}/runs": { body: { mode: "unassign", dryRun: true }, whole: has("samples") },
  "PATCH /api/territories/{id}": { body: { totalProperties: 9 } },
  "DELETE /api/territories/{id}": {},

  "POST /api/webhooks": { body: largest.webhook(limits.registrationsPerWebhook) },
  "POST /api/webhooks/{id}/registrations": { body: largest.registration },
  "GET /api/webhooks": {
    whole: ({ body }) => {
      const Listed = z.array(z.object({ registrations: z.array(z.object({ filter: z.unknown() })) }));
      const found = z.parse(Listed, body);
      expect(found).toHaveLength(limits.webhooksPerCompany);
      for (const { registrations } of found) {
        expect(registrations).toHaveLength(limits.registrationsPerWebhook);
        for (const { filter: shown } of registrations) expect(shown).toEqual(largest.filter);
      }
    },
  },
  "GET /api/webhooks/event-types": { whole: atLeast(10) },
  "GET /api/webhooks/{id}": {},
  "PATCH /api/webhooks/{id}": { body: { name: wide(limits.name - 1, "n") } },
  "POST /api/webhooks/{id}/rotate-secret": {},
  "POST /api/webhooks/{id}/pause": {},
  "POST /api/webhooks/{id}/resume": {},
  "POST /api/webhooks/{id}/test": { whole: has("deliveryId") },
  "POST /api/webhooks/{id}/replay": { body: { from: "2026-01-01" }, whole: has("count") },
  "GET /api/webhooks/{id}/registrations": { whole: counts(limits.registrationsPerWebhook) },
  "GET /api/webhooks/{id}/registrations/{registrationId}": {},
  "PATCH /api/webhooks/{id}/registrations/{registrationId}": { body: { delayMinutes: 5 } },
  "GET /api/webhooks/{id}/deliveries": { id: ofDelivery, query: `limit=${SUMMARIES}`, whole: items(SUMMARIES) },
  "GET /api/webhooks/{id}/deliveries/{deliveryId}": {
    id: ofDelivery,
    whole: ({ body }) => {
      const { attempts, body: sent } = z.parse(z.object({ attempts: z.array(z.unknown()), body: z.string() }), body);
      expect(attempts).toHaveLength(100);
      expect(sent.length).toBeGreaterThan(limits.windowBodyBytes - 100);
    },
  },
  "POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver": { id: ofDelivery, whole: has("deliveryId") },
  "DELETE /api/webhooks/{id}/registrations/{registrationId}": {},
  "DELETE /api/webhooks/{id}": {},

  "GET /api/tags/{id}": {},
  "PATCH /api/tags/{id}": { body: { color: "#123456" } },
  "DELETE /api/tags/{id}": {},
  "DELETE /api/statuses/{id}": {},
  "DELETE /api/users/{id}": {},
  "DELETE /api/prospects/{id}": {},
  "POST /api/prospects/imports/{id}/undo": {},
};

async function placeOf(path: string, { id, query }: Visit): Promise<string> {
  const steps = path.split("/");
  const ofStage = new Map(Object.entries(stage)).get(steps[steps.indexOf("{id}") - 1] ?? "");
  const withId = path.replace("{id}", String((await id?.()) ?? ofStage));
  const place = withId
    .replace("{z}/{x}/{y}", "0/0/0.mvt")
    .replace("{registrationId}", String(stage.registration))
    .replace("{deliveryId}", stage.delivery);
  const [keys, after] = place.split("/{keyId}");
  if (after === undefined) return query === undefined ? place : `${place}?${query}`;
  const [first] = z.parse(z.array(z.object({ id: z.string() })), (await requests.ask("GET", `${keys}`)).body);
  return `${keys}/${first?.id}${after}`;
}

async function answerTo(method: string, path: string, visit: Visit): Promise<Answer> {
  const { body, how } = visit;
  const place = await placeOf(path, visit);
  const sent = typeof body === "function" ? await body() : body;
  if (how === "bare") return send(method, place, sent && { body: JSON.stringify(sent) });
  return method === "POST" && how === undefined ? requests.post(place, sent) : requests.ask(method, place, sent);
}

test("the list of requests has every route, and no other", () => {
  const declared = routes.map(({ method, path }) => `${method} ${path}`);
  expect(Object.keys(walk).toSorted()).toEqual(declared.toSorted());
});

test.each(Object.entries(walk))("%s", async (route, visit) => {
  const [method = "", path = ""] = route.split(" ");
  const answer = await answerTo(method, path, visit);
  expect(
    route.includes(" /api/session/") ? [302, 400, 403] : [200, 201, 202, 204],
    `${answer.status} ${answer.text.slice(0, 300)}`,
  ).toContain(answer.status);
  if (answer.status < 300) (visit.whole ?? isRecord)(answer);
  const isStreamed = routes.some((one) => one.streamed && `${one.method} ${one.path}` === route);
  if (!isStreamed) expect(answerBytes(answer.text)).toBeLessThan(limits.bufferedAnswerBytes);
});
