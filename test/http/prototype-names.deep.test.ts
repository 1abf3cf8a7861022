/**
 * Tests that names of properties that every JavaScript object inherits, such as `constructor`, are ordinary texts for the service: as
 * values of parameters, as keys of a JSON object in a body, and as names of records.
 */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { bodyOf, dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const { id } = dataOf(await as.owner.POST("/api/prospects", { body: { name: "Ada", lat: 1, lng: 2 } }), 201);

/** Names that every object inherits. If the code looks one of them up in an object, it finds a function or, for `__proto__`, an object. */
const inherited = ["constructor", "__proto__"];
/** Inherited names that a body may have as keys. The key `__proto__` is left out, because the parser refuses a body with it. */
const keys = ["constructor", "toString", "hasOwnProperty"];

const Page = z.object({ total: z.int() });

describe.each(inherited)("%s", (name) => {
  test.each(["status", "tagId", "city", "rep", "search"])(
    "as a value of the filter %s matches nothing",
    async (filter) => {
      expect(bodyOf(await as.owner("GET", `/api/prospects?${filter}=${name}`), 200, Page).total).toBe(0);
      const body = { filter: { [filter]: name } };
      expect(bodyOf(await as.owner("POST", "/api/prospects/search", body), 200, Page).total).toBe(0);
      const action = { set: { assignedToUserId: null } };
      const dry = await as.owner("POST", "/api/prospects/bulk", { ...body, action, dryRun: true });
      expect(bodyOf(dry, 200, z.object({ count: z.int() })).count).toBe(0);
    },
  );

  test.each([
    ...["bbox", "near", "territoryId", "assignedToUserId", "page", "dateFrom"].map((one) => `/api/prospects?${one}=`),
    ...["/api/changes?types=", "/api/changes?cursor=", "/api/jobs?cursor=", `/api/jobs/${id}/results?outcome=`],
    "/api/reports/activity?from=2026-01-01&to=2026-01-02&groupBy=",
    "/api/reports/activity?from=2026-01-01&to=2026-01-02&groupBy=day&timezone=",
    ...["/api/appointments?from=", "/api/addresses?after="],
  ])("as the value of a parameter that accepts no free text is refused: %s", async (path) => {
    const faults = problemOf(await as.owner("GET", `${path}${name}`), 400, "validation_failed");
    for (const { parameter } of faults) expect(path).toContain(`${parameter}=`);
  });

  test("as the name of records is kept, and filters find exactly these records", async () => {
    const color = "#123456";
    const status = dataOf(await as.owner.POST("/api/statuses", { body: { value: name, color } }), 201);
    const tag = dataOf(await as.owner.POST("/api/tags", { body: { value: name, color } }), 201);
    const source = { name, sourceId: name, currentStatusId: status.id };
    const made = dataOf(await as.owner.POST("/api/prospects", { body: source }), 201);
    expect(made).toMatchObject({ name, sourceId: name, currentStatus: { value: name } });
    dataOf(await as.owner.PUT("/api/prospects/{id}/tags", { ...at(made.id), body: { tagIds: [tag.id] } }));
    const territory = dataOf(await as.owner.POST("/api/territories", { body: { name } }), 201);
    expect(territory.name).toBe(name);
    for (const filter of ["status", "tagId", "search"] as const) {
      const found = dataOf(await as.owner.GET("/api/prospects", { params: { query: { [filter]: name } } }));
      expect(found.items.map((one) => one.id)).toEqual([made.id]);
    }
    dataOf(await as.owner.DELETE("/api/prospects/{id}", at(made.id)));
  });

  test("as a cell of a CSV file is a text, as a column of a mapping is refused, and as an unknown header is ignored", async () => {
    const upload = (file: string, query: string) =>
      as.owner.send("POST", `/api/prospects/import?dryRun=true${query}`, { body: csvForm(file) });
    const Result = z.object({ imported: z.int(), errors: z.array(z.object({ message: z.string() })) });
    const unknown = `name,lat,lng,status\n${name},1,2,${uniqueName()}-${name}\n${name},1,2,\n`;
    expect(bodyOf(await upload(unknown, ""), 200, Result)).toMatchObject({ imported: 1, errors: [{}] });
    const mapping = encodeURIComponent(JSON.stringify({ name }));
    problemOf(await upload(unknown, `&mapping=${mapping}`), 400, "validation_failed");
    const Ignoring = z.object({ ignoredColumns: z.array(z.string()) });
    const column = await upload(`name,lat,lng,${name}\nA,1,2,x\n`, "");
    expect(bodyOf(column, 200, Ignoring).ignoredColumns).toEqual([name]);
  });

  test("as the type of an operation is rejected", async () => {
    const opId = crypto.randomUUID();
    const operations = [{ opId, type: name, id, fields: {} }];
    const answer = await as.owner("POST", "/api/sync/operations", { deviceId: name, operations });
    const Results = z.object({ results: z.array(z.object({ outcome: z.string() })) });
    expect(bodyOf(answer, 200, Results).results).toMatchObject([{ outcome: "rejected" }]);
  });
});

describe.each(keys)("the key %s", (key) => {
  test("is refused in an object of filters", async () => {
    const filter = { [key]: "x" };
    const bodies = [
      ["/api/prospects/search", { filter }],
      ["/api/prospects/bulk", { filter, action: { delete: true }, dryRun: true }],
    ] as const;
    for (const [path, body] of bodies) {
      const answer = await as.owner("POST", path, body);
      expect(problemOf(answer, 400, "validation_failed")[0]).toMatchObject({ pointer: "/filter" });
      expect(answer.text).toContain(`must not have \\"${key}\\"`);
    }
  });

  test("is kept in custom fields and in the filter of a registration, and ignored in every other body", async () => {
    const customFieldData = { [key]: "x", nested: { [key]: 1 } };
    const made = bodyOf(await as.owner("POST", "/api/prospects", { customFieldData }), 201, Identified);
    const Shown = z.object({ customFieldData: z.unknown() });
    const shown = bodyOf(await as.owner("GET", `/api/prospects/${made.id}`), 200, Shown);
    expect(JSON.stringify(shown.customFieldData)).toBe(JSON.stringify(customFieldData));
    const registrations = [{ event: key, filter: { [key]: "x" } }];
    const webhook = { name: key, url: "https://example.com/", registrations };
    const saved = bodyOf(await as.owner("POST", "/api/webhooks", webhook), 201, z.looseObject({ id: z.number() }));
    expect(saved).toMatchObject({ name: key, registrations: [{ event: key }] });
    expect(JSON.stringify(saved.registrations)).toContain(JSON.stringify({ [key]: "x" }));
    const patched = await as.owner("PATCH", `/api/prospects/${made.id}`, { [key]: "x" });
    expect(Object.keys(bodyOf(patched, 200, z.looseObject({})))).not.toContain(key);
    await as.owner("DELETE", `/api/webhooks/${saved.id}`);
  });

  test("is an ordinary header in a mapping", async () => {
    const mapping = encodeURIComponent(JSON.stringify({ [key]: "name" }));
    const file = csvForm(`${key},lat,lng\nA,1,2\n`);
    const query = `dryRun=true&mapping=${mapping}`;
    const answer = await as.owner.send("POST", `/api/prospects/import?${query}`, { body: file });
    expect(bodyOf(answer, 200, z.looseObject({}))).toMatchObject({ imported: 1, ignoredColumns: [], errors: [] });
  });
});
