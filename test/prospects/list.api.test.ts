/** Tests the list of prospects over HTTP: page sizes, and filters that are ignored or match nothing. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { operations } from "../../docs/client/api.ts";
import { type Client, demo } from "../harness/client.ts";
import { bodyOf, dataOf, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

type ListQuery = NonNullable<operations["prospectsList"]["parameters"]["query"]>;
const list = async (client: Client, query: ListQuery = {}) =>
  dataOf(await client.GET("/api/prospects", { params: { query } }));

const Page = z.object({ items: z.array(z.unknown()), total: z.int(), pageSize: z.int() });

test("pageSize is reduced to 500 and returned; the defaults of page and pageSize are 1 and 50", async () => {
  expect((await list(as.admin, { pageSize: 9999 })).pageSize).toBe(500);
  expect(await list(as.admin)).toMatchObject({ page: 1, pageSize: 50 });
  for (const pageSize of ["500", "501", "1000000000000000", "9".repeat(30), "9".repeat(400)]) {
    const answer = await as.admin("GET", `/api/prospects?pageSize=${pageSize}`);
    expect(bodyOf(answer, 200, Page)).toMatchObject({ pageSize: 500 });
  }
});

test("the page with the largest number is empty and has the true total", async () => {
  const { total } = await list(demo.otherOwner);
  for (const page of [1_000, 2 ** 53 - 1]) {
    expect(await list(demo.otherOwner, { page, pageSize: 500 })).toEqual({ items: [], total, page, pageSize: 500 });
  }
});

test("numbers that are not ids match nothing", async () => {
  for (const assignedToUserId of ["0", "00", "9007199254740993", "9".repeat(30), "9".repeat(400)]) {
    expect((await list(as.admin, { assignedToUserId })).total).toBe(0);
    const { status, text } = await as.admin("GET", `/api/appointments?assignedToUserId=${assignedToUserId}`);
    expect([status, text]).toEqual([200, "[]"]);
  }
});

test("filters by representative are ignored from sales users, even if they are malformed", async () => {
  const long = `${"9,".repeat(1_990)}${"x".repeat(50)}`;
  expect(long.length).toBeGreaterThan(4_000);
  const { total } = await list(as.viewer);
  for (const name of ["rep", "assignedToUserId"] as const) {
    for (const value of [long, "x", '"', "", "🦖"]) {
      expect((await list(as.viewer, { [name]: value })).total, name).toBe(total);
    }
    for (const path of ["/api/prospects", "/api/prospects/pins"]) {
      const answer = await as.admin("GET", `${path}?${name}=${long}`);
      const faults = problemOf(answer, 400, "validation_failed");
      expect(faults[0]?.parameter).toBe(name);
    }
  }
});
