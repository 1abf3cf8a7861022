/** Tests that the messages about a refused request say what is expected and what was found. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { Allow } from "#shared/http/contract.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { requireKnown, validate } from "#shared/http/validate.ts";
import { whyNotUndoable } from "#shared/jobs/bulk/control.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { NewProspect } from "#shared/prospects/input.ts";
import { NewTerritories } from "#shared/territories/import.ts";
import { NewTerritory } from "#shared/territories/territories.ts";
import { unreadableParameter } from "../../infra/local/gateway/request.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { ringOf } from "../harness/rings.ts";

beforeAll(() => {
  // The code needs a table name, and no test reads the table.
  process.env.TABLE_NAME = "t";
});

function faultsOf(work: () => unknown): (string | undefined)[][] {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.faults.map(({ pointer, parameter, message }) => [pointer ?? parameter, message]);
  }
  return [];
}

const latitude = (cause: string) => `must be a latitude from -90 to 90 degrees (${cause}), and is`;
const longitude = "must be a longitude from -180 to 180 degrees (metres are not accepted), and is";
const [exchanged, metres] = ["a longitude may be in its place", "metres are not accepted"];

test("messages say that coordinates are probably exchanged or in metres", () => {
  expect(faultsOf(() => validate("body", NewProspect, { lat: -104.9, lng: 39.7 }))).toEqual([
    ["/lat", `${latitude(exchanged)} -104.9`],
  ]);
  expect(faultsOf(() => validate("body", NewProspect, { lat: 4830000, lng: -11688000.5 }))).toEqual([
    ["/lat", `${latitude(metres)} 4830000`],
    ["/lng", `${longitude} -11688000.5`],
  ]);
  expect(faultsOf(() => validate("query", ProspectFilter, { near: "-104.9,39.7" }))).toEqual([
    ["near", `${latitude(exchanged)} -104.9`],
  ]);
});

test.each([
  [ringOf("1 2, 3 4"), "/polygon", "must have at least 3 points, and has 2"],
  [Array.from({ length: 5_001 }, () => [1, 2]), "/polygon", "must have at most 5000 points, and has 5001"],
  [[[1, 2], [3, 4], [5]], "/polygon/2", "must be a point [lng, lat] of two numbers"],
  [ringOf("1 2, 39.7 -104.9, 3 4"), "/polygon/1/1", `${latitude(exchanged)} -104.9`],
])("a polygon with a fault: %#", (polygon, pointer, message) => {
  expect(faultsOf(() => validate("body", NewTerritory, { name: "T", polygon }))).toEqual([[pointer, message]]);
});

test("a coordinate reference system without a name is named so", () => {
  const file = { type: "FeatureCollection", features: [], crs: { type: "EPSG", properties: { code: 3857 } } };
  expect(faultsOf(() => validate("body", NewTerritories, file))).toContainEqual([
    "/crs",
    "has no text in properties/name, and the service reads only CRS84 and EPSG:4326",
  ]);
});

test.each([
  ["columns", ["status", "mapping"], "is not known. The nearest known name is status."],
  ["?", [".", "id"], "is not known. The nearest known name is .."],
  ["stauts", ["status", "mapping"], "is not known. Did you mean status?"],
])("the unknown parameter %s beside %j", (name, known, message) => {
  expect(faultsOf(() => requireKnown([name], known))).toEqual([[name, message]]);
});

test.each([
  ["/api/prospects?status=New&search=%ff&page=%zz", "search"],
  ["/api/prospects?status=New", undefined],
  ["/api/%ff", undefined],
])("the parameter in %s that cannot be read is %s", (target, parameter) => {
  expect(unreadableParameter(target)).toBe(parameter);
});

test.each<[Allow, string]>([
  ["canManageProspects", "You lack the permission canManageProspects, which an admin can give you."],
  ["admin", "Only admins and owners may do this."],
])("a missing right is named: %s", async (allow, detail) => {
  const handler = endpoint({ summary: "", allow, scope: "none", status: 200, response: z.unknown() }, async () => ({}));
  const { body } = await handler(proxyEvent({ companyId: "1", userId: "2", rights: "sales" }), lambdaContext);
  expect(JSON.parse(body)).toMatchObject({ code: "permission_denied", detail });
});

test.each([
  [{ kind: "import_undo", undoes: 7, endedAt: "2026-11-21T20:00:00.000Z" }, "it is the undo of the import 7"],
  [{ kind: "undo", undoes: 7 }, "it is the undo of the job 7"],
  [{ kind: "prospect_bulk" }, "it has not ended. Wait for its end, or cancel it"],
  [
    { kind: "territory_run", endedAt: "2026-11-21T20:00:00.000Z" },
    "it ended at 2026-11-21T20:00:00.000Z, over 30 days ago",
  ],
] as const)("a job that cannot be undone has one reason: %j", (job, reason) => {
  expect(whyNotUndoable(job)).toBe(reason);
});
