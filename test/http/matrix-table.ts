/** The role matrix: a table with the expected status of each route for each kind of caller. */
import { randomUUID } from "node:crypto";
import { csvForm } from "../harness/csv-form.ts";

export const callers = ["owner", "admin", "plain", "viewer", "manager", "stranger", "disabled", "nobody"] as const;
/**
 * The kinds of callers. `plain` is a sales user without permissions. `viewer` has canViewAllProspects and `manager` has
 * canManageProspects. `stranger` owns another company, `disabled` is a disabled owner, and `nobody` sends no token.
 */
export type CallerName = (typeof callers)[number];

/**
 * The user to whom the prospect of the request is assigned: `mine` is the caller `plain`, and `other` is another user. With `-`, the status
 * does not depend on this user, and an address in the request belongs to no prospect.
 */
export type Whose = "mine" | "other" | "-";

/**
 * The columns are the method, the path, `Whose`, and the expected status for each of `callers`. Only prospects, records that belong to a
 * prospect (such as notes), and addresses have lines with `mine` and `other`. Each caller who may change records has separate records. No
 * line needs a record that a line above it has deleted.
 */
const table = `
GET    /api/session/login                                -      302 302 302 302 302 302 302 302
GET    /api/session/callback                             -      400 400 400 400 400 400 400 400
POST   /api/session/refresh                              -      403 403 403 403 403 403 403 403
POST   /api/session/logout                               -      403 403 403 403 403 403 403 403

GET    /api/me                                           -      200 200 200 200 200 200 401 401

GET    /api/prospects                                    -      200 200 200 200 200 200 401 401
POST   /api/prospects/search                             -      200 200 200 200 200 200 401 401
GET    /api/prospects/clusters                           -      200 200 200 200 200 200 401 401
GET    /api/prospects/tiles/{z}/{x}/{y}                  -      204 204 204 204 204 204 401 401
GET    /api/prospects/pins                               -      200 200 200 200 200 200 401 401
GET    /api/prospects/export                             -      200 200 200 200 200 200 401 401
POST   /api/prospects/import                             -      200 200 403 403 200 200 401 401
GET    /api/prospects/import/template.csv                -      200 200 200 200 200 200 401 401
GET    /api/prospects/imports                            -      200 200 403 403 200 200 401 401
POST   /api/prospects/imports                            -      201 201 403 403 201 201 401 401
GET    /api/prospects/imports/{id}                       -      200 200 403 403 404 404 401 401
POST   /api/prospects/imports/{id}/cancel                -      409 409 403 403 404 404 401 401
POST   /api/prospects/imports/{id}/undo                  -      202 202 403 403 404 404 401 401
GET    /api/reports/activity                             -      200 200 200 200 200 200 401 401
GET    /api/changes                                      -      200 200 200 200 200 200 401 401
POST   /api/prospects/exports                            -      201 201 201 201 201 201 401 401
GET    /api/prospects/exports/{id}                       -      200 200 404 404 404 404 401 401
GET    /api/jobs                                         -      200 200 403 403 200 200 401 401
POST   /api/prospects/bulk                               -      202 202 403 403 202 202 401 401
GET    /api/jobs/{id}                                    -      200 200 403 403 404 404 401 401
GET    /api/jobs/{id}/results                            -      200 200 403 403 404 404 401 401
GET    /api/jobs/{id}/results.ndjson                     -      200 200 403 403 404 404 401 401
GET    /api/jobs/{id}/results.csv                        -      200 200 403 403 404 404 401 401
POST   /api/jobs/{id}/pause                              -      409 409 403 403 404 404 401 401
POST   /api/jobs/{id}/resume                             -      409 409 403 403 404 404 401 401
POST   /api/jobs/{id}/cancel                             -      409 409 403 403 404 404 401 401
POST   /api/jobs/{id}/undo                               -      202 202 403 403 404 404 401 401
POST   /api/prospects                                    -      201 201 201 201 201 201 401 401
GET    /api/prospects/{id}                               mine   200 200 200 200 404 404 401 401
GET    /api/prospects/{id}                               other  200 200 404 200 404 404 401 401
PATCH  /api/prospects/{id}                               mine   200 200 200 200 404 404 401 401
PATCH  /api/prospects/{id}                               other  200 200 404 200 404 404 401 401
PUT    /api/prospects/{id}/tags                          mine   200 200 200 200 404 404 401 401
PUT    /api/prospects/{id}/tags                          other  200 200 404 200 404 404 401 401

GET    /api/prospects/{id}/notes                         mine   200 200 200 200 404 404 401 401
GET    /api/prospects/{id}/notes                         other  200 200 404 200 404 404 401 401
POST   /api/prospects/{id}/notes                         mine   201 201 201 201 404 404 401 401
POST   /api/prospects/{id}/notes                         other  201 201 404 201 404 404 401 401
GET    /api/prospects/{id}/actions                       mine   200 200 200 200 404 404 401 401
GET    /api/prospects/{id}/actions                       other  200 200 404 200 404 404 401 401
POST   /api/prospects/{id}/actions/{registrationId}      mine   202 202 202 202 404 404 401 401
POST   /api/prospects/{id}/actions/{registrationId}      other  202 202 404 202 404 404 401 401
POST   /api/sync/operations                              -      200 200 200 200 200 200 401 401
GET    /api/notes/{id}                                   mine   200 200 200 200 404 404 401 401
GET    /api/notes/{id}                                   other  200 200 404 200 404 404 401 401
PATCH  /api/notes/{id}                                   mine   200 200 200 200 404 404 401 401
PATCH  /api/notes/{id}                                   other  200 200 404 200 404 404 401 401
DELETE /api/notes/{id}                                   mine   200 200 200 200 404 404 401 401
DELETE /api/notes/{id}                                   other  200 200 404 200 404 404 401 401

GET    /api/appointments                                 -      200 200 200 200 200 200 401 401
POST   /api/prospects/{id}/appointments                  mine   201 201 201 201 404 404 401 401
POST   /api/prospects/{id}/appointments                  other  201 201 404 201 404 404 401 401
GET    /api/appointments/{id}                            mine   200 200 200 200 404 404 401 401
GET    /api/appointments/{id}                            other  200 200 404 200 404 404 401 401
PATCH  /api/appointments/{id}                            mine   200 200 200 200 404 404 401 401
PATCH  /api/appointments/{id}                            other  200 200 404 200 404 404 401 401
DELETE /api/appointments/{id}                            mine   200 200 200 200 404 404 401 401
DELETE /api/appointments/{id}                            other  200 200 404 200 404 404 401 401

GET    /api/addresses                                    -      200 200 200 200 200 200 401 401
POST   /api/addresses                                    -      201 201 201 201 201 201 401 401
GET    /api/addresses/{id}                               -      200 200 200 200 200 404 401 401
GET    /api/addresses/{id}                               mine   200 200 200 200 404 404 401 401
GET    /api/addresses/{id}                               other  200 200 404 200 404 404 401 401
PATCH  /api/addresses/{id}                               -      200 200 200 200 200 404 401 401
PATCH  /api/addresses/{id}                               mine   200 200 200 200 404 404 401 401
PATCH  /api/addresses/{id}                               other  200 200 404 200 404 404 401 401

DELETE /api/prospects/{id}                               mine   200 200 200 200 404 404 401 401
DELETE /api/prospects/{id}                               other  200 200 404 200 404 404 401 401

GET    /api/territories                                  -      200 200 200 200 200 200 401 401
GET    /api/territories.geojson                          -      200 200 200 200 200 200 401 401
POST   /api/territories                                  -      201 201 201 201 201 201 401 401
POST   /api/territories/import                           -      200 200 200 200 200 200 401 401
GET    /api/territories/tiles/{z}/{x}/{y}                -      204 204 204 204 204 204 401 401
GET    /api/territories/{id}                             -      200 200 200 200 200 404 401 401
PATCH  /api/territories/{id}                             -      200 200 200 200 200 404 401 401
GET    /api/territories/{id}/stats                       -      200 200 200 200 200 404 401 401
POST   /api/territories/{id}/runs                        -      200 200 403 403 200 404 401 401
DELETE /api/territories/{id}                             -      200 200 200 200 200 404 401 401

GET    /api/users                                        -      200 200 200 200 200 200 401 401
POST   /api/users                                        -      201 201 403 403 403 201 401 401
GET    /api/users/{id}                                   -      200 200 200 200 200 404 401 401
PATCH  /api/users/{id}                                   -      200 200 403 403 403 404 401 401
DELETE /api/users/{id}                                   -      200 200 403 403 403 404 401 401

GET    /api/service-accounts                             -      200 200 403 403 403 200 401 401
POST   /api/service-accounts                             -      201 201 403 403 403 201 401 401
GET    /api/service-accounts/{id}                        -      200 200 403 403 403 404 401 401
PATCH  /api/service-accounts/{id}                        -      200 200 403 403 403 404 401 401
GET    /api/service-accounts/{id}/keys                   -      200 200 403 403 403 404 401 401
POST   /api/service-accounts/{id}/keys                   -      201 201 403 403 403 404 401 401
POST   /api/service-accounts/{id}/keys/{keyId}/rotate    -      404 404 403 403 403 404 401 401
POST   /api/service-accounts/{id}/keys/{keyId}/take-over -      404 404 403 403 403 404 401 401
DELETE /api/service-accounts/{id}/keys/{keyId}           -      404 404 403 403 403 404 401 401
DELETE /api/service-accounts/{id}                        -      200 200 403 403 403 404 401 401

GET    /api/statuses                                     -      200 200 200 200 200 200 401 401
POST   /api/statuses                                     -      201 201 403 403 403 201 401 401
GET    /api/statuses/{id}                                -      200 200 200 200 200 404 401 401
PATCH  /api/statuses/{id}                                -      200 200 403 403 403 404 401 401
DELETE /api/statuses/{id}                                -      200 200 403 403 403 404 401 401

GET    /api/tags                                         -      200 200 200 200 200 200 401 401
POST   /api/tags                                         -      201 201 403 403 403 201 401 401
GET    /api/tags/{id}                                    -      200 200 200 200 200 404 401 401
PATCH  /api/tags/{id}                                    -      200 200 403 403 403 404 401 401
DELETE /api/tags/{id}                                    -      200 200 403 403 403 404 401 401

GET    /api/webhooks                                     -      200 200 403 403 403 200 401 401
POST   /api/webhooks                                     -      201 201 403 403 403 201 401 401
GET    /api/webhooks/event-types                         -      200 200 403 403 403 200 401 401
GET    /api/webhooks/{id}                                -      200 200 403 403 403 404 401 401
PATCH  /api/webhooks/{id}                                -      200 200 403 403 403 404 401 401
POST   /api/webhooks/{id}/pause                          -      200 200 403 403 403 404 401 401
POST   /api/webhooks/{id}/resume                         -      200 200 403 403 403 404 401 401
POST   /api/webhooks/{id}/test                           -      202 202 403 403 403 404 401 401
POST   /api/webhooks/{id}/replay                         -      202 202 403 403 403 404 401 401
POST   /api/webhooks/{id}/rotate-secret                  -      201 201 403 403 403 404 401 401
GET    /api/webhooks/{id}/registrations                  -      200 200 403 403 403 404 401 401
POST   /api/webhooks/{id}/registrations                  -      201 201 403 403 403 404 401 401
GET    /api/webhooks/{id}/registrations/{registrationId} -      200 200 403 403 403 404 401 401
PATCH  /api/webhooks/{id}/registrations/{registrationId} -      200 200 403 403 403 404 401 401
GET    /api/webhooks/{id}/deliveries                     -      200 200 403 403 403 404 401 401
GET    /api/webhooks/{id}/deliveries/{deliveryId}        -      404 404 403 403 403 404 401 401
POST   /api/webhooks/{id}/deliveries/{deliveryId}/redeliver -   404 404 403 403 403 404 401 401
DELETE /api/webhooks/{id}/registrations/{registrationId} -      200 200 403 403 403 404 401 401
DELETE /api/webhooks/{id}                                -      200 200 403 403 403 404 401 401
`;

export interface Row {
  readonly method: string;
  readonly path: string;
  readonly whose: Whose;
  /** The expected statuses, in the order of `callers`. */
  readonly statuses: readonly number[];
}

export const rows: readonly Row[] = table
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => {
    const [method = "", path = "", whose, ...statuses] = line.split(/ +/);
    if ((whose !== "mine" && whose !== "other" && whose !== "-") || statuses.length !== callers.length) {
      throw new Error(`not a row of the matrix: ${line}`);
    }
    return { method, path, whose, statuses: statuses.map(Number) };
  });

let made = 0;
const unique = (): string => `fresh ${made++}`;
const soon = (): string => new Date(Date.now() + 3_600_000).toISOString();

/** A valid body for each POST, PUT and PATCH with a JSON body. The body of a PATCH changes the record. */
const bodies: Record<string, () => object> = {
  "POST /api/prospects": () => ({ name: unique() }),
  "POST /api/prospects/imports": () => ({ dryRun: true }),
  "POST /api/prospects/exports": () => ({ search: unique() }),
  "POST /api/prospects/bulk": () => ({ ids: [2 ** 50], action: { set: { currentStatusId: null } } }),
  "PATCH /api/prospects/{id}": () => ({ source: unique() }),
  "PUT /api/prospects/{id}/tags": () => ({ tagIds: [] }),
  "POST /api/prospects/{id}/notes": () => ({ body: unique() }),
  "POST /api/sync/operations": () => ({
    deviceId: "tablet",
    operations: [
      { opId: randomUUID(), type: "prospect.create", clientRecordId: randomUUID(), fields: { name: unique() } },
    ],
  }),
  "PATCH /api/notes/{id}": () => ({ body: unique() }),
  "POST /api/prospects/{id}/appointments": () => ({ title: unique(), startAt: soon() }),
  "PATCH /api/appointments/{id}": () => ({ allDay: true }),
  "POST /api/addresses": () => ({ address1: unique(), city: "Denver", state: "CO", zip: "80202" }),
  "PATCH /api/addresses/{id}": () => ({ zip: unique() }),
  "POST /api/territories": () => ({ name: unique() }),
  "POST /api/territories/{id}/runs": () => ({ mode: "unassign", dryRun: true }),
  "POST /api/territories/import": () => ({
    type: "FeatureCollection",
    features: [{ type: "Feature", geometry: null, properties: { name: unique() } }],
  }),
  "PATCH /api/territories/{id}": () => ({ totalProperties: 7 }),
  "POST /api/users": () => ({ email: `${randomUUID()}@x.test`, firstName: "New", lastName: "User", role: "sales" }),
  "PATCH /api/users/{id}": () => ({ lastName: unique() }),
  "POST /api/service-accounts": () => ({ name: unique(), role: "admin" }),
  "PATCH /api/service-accounts/{id}": () => ({ name: unique() }),
  "POST /api/service-accounts/{id}/keys": () => ({ name: unique(), scopes: ["prospects:read"] }),
  "POST /api/statuses": () => ({ value: unique() }),
  "PATCH /api/statuses/{id}": () => ({ sortOrder: 7 }),
  "POST /api/tags": () => ({ value: unique() }),
  "PATCH /api/tags/{id}": () => ({ color: "#123456" }),
  "POST /api/webhooks": () => ({ name: unique(), url: "http://127.0.0.1:9/" }),
  "PATCH /api/webhooks/{id}": () => ({ name: unique() }),
  "POST /api/webhooks/{id}/replay": () => ({ from: "2026-06-01" }),
  "POST /api/webhooks/{id}/rotate-secret": () => ({ secretKey: `a long ${unique()} secret` }),
  "POST /api/webhooks/{id}/registrations": () => ({ event: unique() }),
  "PATCH /api/webhooks/{id}/registrations/{registrationId}": () => ({ delayMinutes: 7 }),
};

export const formFor = ({ method, path }: Pick<Row, "method" | "path">): FormData | undefined =>
  `${method} ${path}` === "POST /api/prospects/import" ? csvForm(`name,lat,lng\n${unique()},1,2\n`) : undefined;

export const bodyFor = ({ method, path }: Pick<Row, "method" | "path">): object | undefined =>
  bodies[`${method} ${path}`]?.();
