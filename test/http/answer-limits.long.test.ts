/**
 * Tests that every route sends a complete answer if its data has the maximum documented size. The local gateway answers 502 if an answer is
 * too large for Lambda, as API Gateway does.
 */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { answerBytes } from "#shared/http/answer.ts";
import * as limits from "#shared/limits.ts";
import { routes } from "../../infra/routes/routes.ts";
import { type Answer, send } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import {
  address,
  appointment,
  badFile,
  filter,
  name,
  newNote,
  OPERATIONS,
  prospect,
  registration,
  STREAMED,
  SUMMARIES,
  territory,
  text,
  webhook,
  wide,
} from "./answer-limits-records.ts";
import { atLeast, counts, itemsOf, type Requests, requestsOf } from "./answer-limits-requests.ts";
import { newStage, type Stage } from "./answer-limits-stage.ts";
import { accountVisits, has, type Visit, visit } from "./answer-limits-visits.ts";

let requests: Requests;
let stage: Stage;
beforeAll(async () => {
  requests = requestsOf((await newTeam()).owner);
  stage = await newStage(requests);
}, 300_000);

const ask = (...request: Parameters<Requests["ask"]>) => requests.ask(...request);
const post = (...request: Parameters<Requests["post"]>) => requests.post(...request);

const read = (path: () => string, whole?: (answer: Answer) => void): Visit => visit(() => ask("GET", path()), whole);

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
  "GET /health": read(() => "/health", has("status")),
  "POST /health/webhooks": visit(() => send("POST", "/health/webhooks", { body: text(limits.note) }), has("sha256")),
  "GET /docs": read(
    () => "/docs",
    ({ text }) => expect(text).toMatch(/<\/html>\s*$/),
  ),
  // The routes of the sign-in return no list. Their answers have a fixed size.
  "GET /api/session/login": visit(() => send("GET", "/api/session/login")),
  "GET /api/session/callback": visit(() => send("GET", "/api/session/callback")),
  "POST /api/session/refresh": visit(() => send("POST", "/api/session/refresh")),
  "POST /api/session/logout": visit(() => send("POST", "/api/session/logout")),
  "GET /api/me": read(() => "/api/me", has("company.id")),

  "POST /api/users": visit(() =>
    post("/api/users", { email: `${randomUUID()}@x.test`, firstName: name, lastName: name, role: "sales" }),
  ),
  "GET /api/users": read(() => "/api/users", atLeast(25)),
  "GET /api/users/{id}": read(() => `/api/users/${stage.user}`),
  "PATCH /api/users/{id}": visit(() => ask("PATCH", `/api/users/${stage.user}`, { role: "admin" })),

  ...accountVisits({ ask, post }, () => stage.account),

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
  "GET /api/tags": read(() => "/api/tags", atLeast(limits.tagsPerCompany)),

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
        operations: Array.from({ length: OPERATIONS }, () => newNote(stage.prospect)),
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
  "POST /api/jobs/{id}/pause": visit(async () => post(`/api/jobs/${await requests.newJob()}/pause`)),
  "POST /api/jobs/{id}/resume": visit(async () => {
    const id = await requests.newJob();
    await post(`/api/jobs/${id}/pause`);
    const answer = await post(`/api/jobs/${id}/resume`);
    // Cancels the job, because the test does not need its result, and its remaining work would take seconds of processor time.
    await ask("POST", `/api/jobs/${id}/cancel`);
    return answer;
  }),
  "POST /api/jobs/{id}/cancel": visit(async () => post(`/api/jobs/${await requests.newJob()}/cancel`)),
  "POST /api/jobs/{id}/undo": visit(async () => {
    const id = await requests.newJob();
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
    // The company has one webhook less than the maximum, and one of its webhooks has one registration less, because later requests create
    // both.
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
    ask("PATCH", `/api/webhooks/${stage.webhook}`, { name: wide(limits.name - 1, "n") }),
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
    () => `/api/webhooks/${stage.webhookOfDelivery}/deliveries?limit=${SUMMARIES}`,
    (answer) => expect(itemsOf(answer)).toHaveLength(SUMMARIES),
  ),
  "GET /api/webhooks/{id}/deliveries/{deliveryId}": read(
    () => `/api/webhooks/${stage.webhookOfDelivery}/deliveries/${stage.delivery}`,
    ({ body }) => {
      const { attempts, body: sent } = z.parse(z.object({ attempts: z.array(z.unknown()), body: z.string() }), body);
      expect(attempts).toHaveLength(100);
      expect(sent.length).toBeGreaterThan(limits.windowBodyBytes - 100);
    },
  ),
  "POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver": visit(
    () => post(`/api/webhooks/${stage.webhookOfDelivery}/deliveries/${stage.delivery}/redeliver`),
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
