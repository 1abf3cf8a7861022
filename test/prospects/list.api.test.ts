/** Tests the list of prospects over HTTP: pages, page sizes, filters and refused parameters. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { operations } from "../../docs/client/api.ts";
import { at, type Client, demo } from "../harness/client.ts";
import { bodyOf, dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

type ListQuery = NonNullable<operations["prospectsList"]["parameters"]["query"]>;
const list = async (client: Client, query: ListQuery = {}) =>
  dataOf(await client.GET("/api/prospects", { params: { query } }));

const Page = z.object({ items: z.array(z.unknown()), total: z.int(), pageSize: z.int() });

describe("listing", () => {
  test("pages contain each record once, newest first, and a page past the end is empty", async () => {
    const seen: { id: number; createdAt: string }[] = [];
    let total = 0;
    for (let page = 1; ; page++) {
      const { items, total: all } = await list(demo.otherOwner, { page, pageSize: 37 });
      total = all;
      if (items.length === 0) break;
      seen.push(...items);
    }
    expect(seen).toHaveLength(total);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(total);
    const sorted = seen.toSorted((a, b) =>
      a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : b.id - a.id,
    );
    expect(seen.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id));
  });

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

  test("quotes allow commas in the names of cities and representatives", async () => {
    const city = `Washington, ${uniqueName()}`;
    const body = { address: { address1: "1 Main St", city, state: "DC", zip: "20001" } };
    const { id } = dataOf(await as.admin.POST("/api/prospects", { body }), 201);
    const ids = async (query: ListQuery) => (await list(as.admin, query)).items.map((item) => item.id);
    expect(await ids({ city: `"${city.toLowerCase()}",Nowhere` })).toEqual([id]);
    expect(await ids({ city })).toEqual([]);
    const all = dataOf(await as.admin.GET("/api/users"));
    const ravi = all.find(({ email }) => email === as.rep.email)?.id ?? 0;
    dataOf(await as.owner.PATCH("/api/users/{id}", { ...at(ravi), body: { lastName: "Rep, Jr." } }));
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { assignedToUserId: ravi } }));
    expect(await ids({ rep: 'Rita Rep, "RAVI Rep, Jr."' })).toEqual([id]);
    expect(await ids({ rep: "Ravi Rep, Jr." })).toEqual([]);
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
        expect((await as.viewer.GET("/api/prospects/pins", { params: { query: { [name]: value } } })).response.ok).toBe(
          true,
        );
      }
      for (const path of ["/api/prospects", "/api/prospects/pins"]) {
        const answer = await as.admin("GET", `${path}?${name}=${long}`);
        const faults = problemOf(answer, 400, "validation_failed");
        expect(faults[0]?.parameter).toBe(name);
      }
    }
  });

  test.each([
    "page=0",
    "page=-1",
    "page=1.5",
    "page=x",
    "page=9007199254740992",
    `page=${"9".repeat(30)}`,
    "pageSize=1e3",
    "pageSize=-1",
    "pageSize=1.5",
    "pageSize=000",
    "page=",
    "pageSize=0",
    "pageSize=abc",
    "bbox=1,2",
    "dateFrom=2026-02-30",
    "page=1&page=2",
  ])("%s is refused and names its parameter", async (query) => {
    const faults = problemOf(await as.admin("GET", `/api/prospects?${query}`), 400, "validation_failed");
    expect(faults[0]?.parameter).toBe(query.split("=")[0]);
  });

  test("filters find records of the demo company", async () => {
    const total = async (query: ListQuery) => (await list(demo.otherOwner, query)).total;
    const all = await total({});
    const statuses = dataOf(await demo.otherOwner.GET("/api/statuses")).map(({ value }) => value);
    const some = await total({ status: statuses.join(",") });
    expect(some).toBeGreaterThan(0);
    expect(some).toBeLessThan(all);
    expect(await total({ status: "no such status" })).toBe(0);
    expect((await total({ city: "phoenix" })) + (await total({ city: "Tempe,Scottsdale,GLENDALE" }))).toBe(200);
    expect(await total({ bbox: "-113,33,-111,34" })).toBe(200);
    expect(await total({ dateFrom: "2026-01-01", dateTo: "2025-01-01" })).toBe(0);
    expect(await total({ assignedToUserId: "unassigned" })).toBeGreaterThan(0);
  });
});
