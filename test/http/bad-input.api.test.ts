/**
 * Tests that every endpoint refuses an invalid field with a JSON pointer to the field, and ignores an unknown field. An unknown query
 * parameter is refused in the documented order of errors, unless its name begins with `_`.
 */
import { expect, test } from "vitest";
import { routes } from "../../infra/routes/routes.ts";
import { type Answer, json, send } from "../harness/client.ts";
import { problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { newRecords, pathOf } from "./matrix-stage.ts";
import { bodyFor, type Row, rows } from "./matrix-table.ts";

const as = await newTeam();
const mine = await newRecords(as.owner);

const byName = new Map<string, Row>(
  rows.filter(({ whose }) => whose !== "other").map((row) => [`${row.method} ${row.path}`, row]),
);
const writes = [...byName].filter(([, row]) => bodyFor(row) !== undefined);
const withIds = [...byName].filter(([, { path }]) => path.includes("{id}"));

const sendText = ({ method, path }: Pick<Row, "method" | "path">, body: string): Promise<Answer> =>
  as.owner.send(method, pathOf({ path }, mine), { headers: json, body });

/** Returns a valid body, in which the value of each of `fields` is replaced by `written`, which may be invalid JSON. */
function withFields(row: Row, fields: readonly string[], written: string): string {
  const others = Object.entries(bodyFor(row) ?? {}).filter(([name]) => !fields.includes(name));
  const texts = [
    ...others.map(([name, value]) => [name, JSON.stringify(value)]),
    ...fields.map((name) => [name, written]),
  ];
  return `{${texts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`;
}

function rowOf(name: string): Row {
  const row = byName.get(name);
  if (row === undefined) throw new Error(`no such route: ${name}`);
  return row;
}

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
/** Returns a valid body that begins with `fields`. */
const after = (fields: string, row: Row): string => `{${fields},${JSON.stringify(bodyFor(row)).slice(1)}`;

test.each(writes)(
  "%s ignores unknown fields and the server's own fields, and `__proto__` is malformed",
  async (_, row) => {
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, i]))).slice(1, -1);
    const own =
      '"id":1,"companyId":1,"createdAt":"2001-01-01T00:00:00Z","deletedAt":"2001-01-01T00:00:00Z","version":9';
    const fields = `${many},"constructor":{"isActive":false},${own},"more":${nested(1_000)}`;
    const answer = await sendText(row, after(fields, row));
    expect(answer.status, answer.text).toBe(row.statuses[0]);
    expect(answer.text).not.toMatch(/"(?:id|companyId)":1[,}]|2001-01-01|k999/);
    problemOf(await sendText(row, after('"__proto__":{"role":"owner"}', row)), 400, "malformed_json");
  },
);

const freeForms = [
  ["POST /api/prospects", "customFieldData", ""],
  ["PATCH /api/prospects/{id}", "customFieldData", ""],
  ["POST /api/webhooks/{id}/registrations", "filter", ""],
  ["POST /api/webhooks", "registrations", "/0/filter"],
] as const;

test.each(freeForms)("%s: free JSON in %s%s has its own limits", async (route, field, below) => {
  const refusal = async (free: string) => {
    const written = below === "" ? free : `[{"event":"prospect.created","filter":${free}}]`;
    const answer = await sendText(rowOf(route), withFields(rowOf(route), [field], written));
    return problemOf(answer, 400, "validation_failed").map(({ pointer }) => pointer);
  };
  const place = `/${field}${below}`;
  expect(await refusal('{"a":1e999,"b":{"c":[1,-1e999]}}')).toEqual([`${place}/a`, `${place}/b/c/1`]);
  expect(await refusal(`{"a":${nested(1_000)}}`)).toEqual([place]);
});

type Fields = Readonly<Record<string, readonly string[]>>;

/** Returns the route that creates a record and the route that changes it, each with these fields. */
const both = (collection: string, fields: readonly string[], one = `${collection}/{id}`): Fields => ({
  [`POST ${collection}`]: fields,
  [`PATCH ${one}`]: fields,
});
const appointments = "/api/prospects/{id}/appointments";
const registrations = "/api/webhooks/{id}/registrations";
const texts: Fields = {
  ...both("/api/prospects", ["name", "phoneNumber", "secondaryPhoneNumber", "emailAddress", "source", "sourceId"]),
  ...both("/api/prospects/{id}/notes", ["body"], "/api/notes/{id}"),
  ...both(appointments, ["title", "location", "notes"], "/api/appointments/{id}"),
  ...both("/api/addresses", ["address1", "address2", "city", "state", "zip", "formattedAddress"]),
  ...both("/api/territories", ["name"]),
  "POST /api/users": ["email", "firstName", "lastName", "sub"],
  "PATCH /api/users/{id}": ["firstName", "lastName"],
  ...both("/api/statuses", ["value", "color"]),
  ...both("/api/tags", ["value", "color"]),
  "POST /api/webhooks": ["name", "url", "secretKey"],
  "PATCH /api/webhooks/{id}": ["name", "url"],
  ...both(registrations, ["event", "manualTriggerButtonText"], `${registrations}/{registrationId}`),
};
const names: Fields = {
  ...both("/api/users", ["firstName"]),
  ...both("/api/statuses", ["value"]),
  ...both("/api/tags", ["value"]),
  ...both("/api/webhooks", ["name"]),
  ...both("/api/territories", ["name"]),
};
const ids = ["9007199254740992", '"1"', "0", "1.5", "1e300", "-1", "true"];
const instants = ["2026-02-30", "26-1-1", "now", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", ""].map((text) =>
  JSON.stringify(text),
);
const numbers = ["1e999", '"1"', "[]", "true", "-1e999", '"NaN"', '"Infinity"'];
const notJson = ["NaN", "Infinity", "-Infinity", "nan", "inf", "0x10", "+1", ".5", "1.", "01", "1_0"];

const prospectIds = ["addressId", "currentStatusId", "assignedToUserId"];
const refused: readonly { readonly fields: Fields; readonly values: readonly string[] }[] = [
  { fields: texts, values: ['"\\ud800"', "7", "[]", '"\\udc00x"'] },
  { fields: names, values: ['"\\u0000"', '"\\u0007 \\u007f"', '"\\u200b\\u202e"'] },
  {
    fields: {
      "POST /api/prospects": prospectIds,
      "PATCH /api/prospects/{id}": [...prospectIds, "assignedByUserId"],
      ...both(appointments, ["assignedToUserId"], "/api/appointments/{id}"),
      ...both("/api/territories", ["assignedToUserId"]),
    },
    values: ids,
  },
  {
    fields: {
      "POST /api/prospects": ["sourceCreatedAt"],
      ...both(appointments, ["startAt", "endAt"], "/api/appointments/{id}"),
    },
    values: instants,
  },
  {
    fields: {
      ...both("/api/prospects", ["lat", "lng"]),
      ...both("/api/territories", ["totalProperties"]),
      ...both("/api/statuses", ["sortOrder"]),
      [`POST ${registrations}`]: ["delayMinutes"],
    },
    values: numbers,
  },
  { fields: { "PUT /api/prospects/{id}/tags": ["tagIds"] }, values: ["7", "{}", ...ids.map((id) => `[${id}]`)] },
];
/**
 * The first route of each entry of `refused` gets all values of this entry. The fields of the other routes have the same schemas, so these
 * routes get only the first three values.
 */
const cases = refused.flatMap(({ fields, values }) =>
  Object.entries(fields).map(([route, names], i) => [route, names, i === 0 ? values : values.slice(0, 3)] as const),
);

test.each(cases)("%s: errors name %j", async (route, fields, values) => {
  const row = rowOf(route);
  for (const value of values) {
    const faults = problemOf(await sendText(row, withFields(row, fields, value)), 400, "validation_failed");
    expect(new Set(faults.map(({ pointer }) => pointer?.split("/")[1])), value).toEqual(new Set(fields));
  }
});

test.each(["POST /api/prospects", "PATCH /api/territories/{id}"])(
  "%s: numbers that JSON cannot express are malformed",
  async (route) => {
    const field = route.includes("prospects") ? "lat" : "totalProperties";
    for (const value of notJson) {
      problemOf(await sendText(rowOf(route), withFields(rowOf(route), [field], value)), 400, "malformed_json");
    }
  },
);

const badIds = ["0", "1e3", "9007199254740992", "99999999999999999999", "-1", "1.5", "NaN", "%F0%9F%90%95", "1%2F2"];

test.each(withIds)("%s: invalid ids are rejected, also with an encoded slash", async (_, row) => {
  for (const id of row.path === "/api/prospects/{id}" ? badIds : badIds.slice(0, 3)) {
    const path = row.path.replace("{id}", id).replace("{registrationId}", "1");
    problemOf(await as.owner(row.method, path, bodyFor(row)), 400, "validation_failed");
  }
});

test("an encoded slash reaches no other route", async () => {
  for (const path of ["tags%2F1", "prospects%2Fpins", "prospects%2f1", "webhooks/1%2Fregistrations"]) {
    const { status, text } = await as.owner("GET", `/api/${path}`);
    expect([400, 404], text).toContain(status);
  }
});

const days = ["2026-02-30", "2026-00-10", "2026-01-01T24:30:00Z", "2026-01-01T25:00:00Z", "yesterday", "NaN"];
const numbersOfPages = ["NaN", "Infinity", "1e3", "-0", "0", "000", "-1", "1.5", "x", ""];
const boxes = [
  ...["1,2,3", "1,2,3,4,5", "a,b,c,d", "0,10,1,5", "-181,0,0,1", ""],
  ...["NaN,0,1,1", "0,0,Infinity,1", "-inf,0,1,1", "0,0,1e999,1", "0x1,0,1,1"],
];
const queries: readonly (readonly [path: string, parameter: string, values: readonly string[]])[] = [
  ...["dateFrom", "dateTo"].map((name) => ["/api/prospects", name, days] as const),
  ["/api/prospects/pins", "dateTo", days],
  ...["from", "to"].map((name) => ["/api/appointments", name, days] as const),
  ["/api/prospects", "page", [...numbersOfPages, "1&page=2", "9007199254740992", "9".repeat(30)]],
  ["/api/prospects", "pageSize", [...numbersOfPages, "1&pageSize=2"]],
  ["/api/prospects", "bbox", boxes],
  ["/api/prospects", "territoryId", ["x", "-1", "1.5", "1,2", "9".repeat(16)]],
  ["/api/prospects", "near", ["", "1", "1,2,3", "NaN,1", "91,0", "0,181", "0,1e999"]],
  ["/api/prospects", "maxMeters", ["10", "-1&near=0,0", "NaN&near=0,0", "1e9&near=0,0", "&near=0,0"]],
  ["/api/prospects", "maxMeters", ["500,abc&near=0,0", "500,7&near=0,0"]],
  ["/api/prospects", "updatedSince", ["", "yesterday", "2026-13-01"]],
  ["/api/prospects/clusters?zoom=10", "bbox", ["1,2,3", "0,10,1,5"]],
  ["/api/prospects/clusters?bbox=0,0,1,1", "zoom", ["23", "NaN"]],
  ["/api/prospects/pins", "bbox", ["nan,nan,nan,nan", "0,0,0,1,"]],
  ["/api/addresses", "after", ["NaN", "1e3", "9007199254740993", "-1"]],
  ["/api/addresses", "limit", ["NaN", "Infinity", "0"]],
];

test.each(queries)("%s: an error names %s", async (path, parameter, values) => {
  for (const value of values) {
    const query = `${path.includes("?") ? "&" : "?"}${parameter}=${value}`;
    const faults = problemOf(await as.owner("GET", `${path}${query}`), 400, "validation_failed");
    expect(new Set(faults.map((fault) => fault.parameter)), value).toEqual(new Set([parameter]));
  }
});

const paths = routes
  .filter(({ path }) => path.startsWith("/api/") && !path.startsWith("/api/session/"))
  .map(({ method, path }) => [method, path.replaceAll(/\{\w+\}/g, "9000000000000000")] as const);

test.each(paths)(
  "%s %s refuses an unknown parameter before it looks at the body and the record",
  async (method, path) => {
    const answer = await as.owner(method, `${path}?statuss=New&_=1`);
    const faults = problemOf(answer, 400, "validation_failed");
    expect(faults).toMatchObject([{ parameter: "statuss", code: "unknown_parameter" }]);
    problemOf(await send(method, `${path}?statuss=New`), 401, "unauthenticated");
    const ignored = await as.owner(method, `${path}?_=1&_b=2`);
    expect(ignored.text).not.toContain("unknown_parameter");
  },
);

test.each([
  ["status[]", "status"],
  ["Status", "status"],
  ["tag", "tagId"],
  ["pagesize", "pageSize"],
  ["territory", "territoryId"],
  ["sourceid", "sourceId"],
])("?%s= on a list, an export and the maps names %s", async (name, nearest) => {
  for (const path of ["", "/pins", "/export", "/clusters", "/tiles/0/0/0.mvt"].map((end) => `/api/prospects${end}`)) {
    const answer = await as.owner("GET", `${path}?${encodeURIComponent(name)}=New`);
    expect(problemOf(answer, 400, "validation_failed"), path).toMatchObject([
      { parameter: name, message: `is not known. Did you mean ${nearest}?` },
    ]);
  }
});

test("a missing right is reported before an unknown parameter, and an unknown path gets 404", async () => {
  problemOf(await as.rep("GET", "/api/webhooks?x=1"), 403, "permission_denied");
  problemOf(await as.owner("GET", "/api/prospectss?x=1"), 404, "not_found");
  problemOf(await as.owner("GET", "/api/prospects/9000000000000000"), 404, "not_found");
});

test("at most ten names of at most 64 characters are shown", async () => {
  const names = Array.from({ length: 12 }, (_, i) => `${i}${"🏠".repeat(70)}`);
  const query = names.map((name) => `${encodeURIComponent(name)}=1`).join("&");
  const faults = problemOf(await as.owner("GET", `/api/prospects?${query}`), 400, "validation_failed");
  expect(faults.map(({ parameter }) => parameter)).toEqual(
    names.slice(0, 10).map((name) => [...name].slice(0, 64).join("")),
  );
  expect(problemOf(await as.owner("GET", "/api/me?=1"), 400, "validation_failed")).toMatchObject([
    { parameter: "", message: "is not known" },
  ]);
});

test("maps and exports ignore pages, and sales users may send any filter for representatives", async () => {
  for (const path of [
    ...["prospects/pins", "prospects/export", "prospects/clusters", "prospects/tiles/0/0/0.mvt"],
    "territories/tiles/0/0/0.mvt",
  ]) {
    const needed = path === "prospects/clusters" ? "&bbox=0,0,1,1&zoom=1" : "";
    const answer = await as.owner("GET", `/api/${path}?page=-1&pageSize=x&page=2${needed}`);
    expect([200, 204], answer.text).toContain(answer.status);
  }
  for (const path of ["", "/pins", "/export"]) {
    expect((await as.rep("GET", `/api/prospects${path}?assignedToUserId=x&rep=,`)).status).toBe(200);
  }
});
