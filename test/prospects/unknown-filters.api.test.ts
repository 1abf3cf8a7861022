/**
 * Tests that an unknown name among the filters of a body is refused. Also tests that a filter in another place of a body is ignored, as the
 * OpenAPI document says.
 */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const name = uniqueName();
const polygon: [number, number][] = [
  [0, 0],
  [2, 0],
  [2, 2],
  [0, 2],
];
const territory = dataOf(await as.owner.POST("/api/territories", { body: { name, polygon } }), 201);
for (const one of ["anna", "bert"]) {
  dataOf(await as.owner.POST("/api/prospects", { body: { name: `${name} ${one}`, lat: 1, lng: 1 } }), 201);
}

const action = { delete: true };
const run = { mode: "unassign", dryRun: true };
const bodies = [
  ["search", "/api/prospects/search", {}],
  ["bulk", "/api/prospects/bulk", { action, dryRun: true }],
  ["run", `/api/territories/${territory.id}/runs`, run],
] as const;

test.each(bodies)(
  "an unknown name in the filter of a %s is refused with the names of the filters",
  async (_, path, body) => {
    const answer = await as.owner("POST", path, { ...body, filter: { statuss: "New", town: "Denver", search: name } });
    const [fault, ...others] = problemOf(answer, 400, "validation_failed");
    expect(others).toEqual([]);
    expect(fault).toMatchObject({ pointer: "/filter", message: expect.stringContaining('"statuss", "town"') });
    expect(fault?.message).toContain("dateFrom, dateTo");
  },
);

test.each(bodies)("a thousand unknown names in the filter of a %s get a short answer", async (_, path, body) => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_none, i) => [`${i}`.padEnd(500, "x"), 1]));
  const answer = await as.owner("POST", path, { ...body, filter: many });
  problemOf(answer, 400, "validation_failed");
  expect(answer.text.length).toBeLessThan(2_000);
});

test("a filter outside `filter` is ignored, and in the body of an export a field `filter` is ignored", async () => {
  // The search finds parts of words. A single letter could also be part of `name`, which both prospects contain.
  const search = `${name} anna`;
  const Total = z.object({ total: z.number() });
  const totalOf = async (body: object) =>
    bodyOf(await as.owner("POST", "/api/prospects/search", body), 200, Total).total;
  expect(await totalOf({ filter: { search } })).toBe(1);
  expect(await totalOf({ search })).toBe(2);
  const Count = z.object({ count: z.number() });
  const runOf = async (body: object) => {
    const path = `/api/territories/${territory.id}/runs`;
    return bodyOf(await as.owner("POST", path, { ...run, mode: "assign", toUserId: me, ...body }), 200, Count).count;
  };
  const me = dataOf(await as.owner.GET("/api/me")).user.id;
  expect(await runOf({ filter: { search } })).toBe(1);
  expect(await runOf({ search })).toBe(2);
  const Job = z.object({ id: z.number(), state: z.string(), total: z.nullable(z.number()) });
  const exportedBy = async (body: object) => {
    const { id } = bodyOf(await as.owner("POST", "/api/prospects/exports", body), 201, Job);
    const look = async () => bodyOf(await as.owner("GET", `/api/prospects/exports/${id}`), 200, Job);
    await expect.poll(async () => (await look()).state).toBe("completed");
    return (await look()).total;
  };
  expect(await exportedBy({ search })).toBe(1);
  expect(await exportedBy({ filter: { search } })).toBe(2);
});
