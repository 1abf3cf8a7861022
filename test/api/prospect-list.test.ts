/** The list of prospects over HTTP: pages, sizes, refused parameters, and filters that find what they name. */
import { describe, expect, test } from "vitest";
import type { operations } from "../../docs/client/api.ts";
import { type Client, demo } from "./client.ts";
import { dataOf, problemOf } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

type ListQuery = NonNullable<operations["prospectsList"]["parameters"]["query"]>;
const list = async (client: Client, query: ListQuery = {}) =>
  dataOf(await client.GET("/api/prospects", { params: { query } }));

describe("listing", () => {
  test("pages visit each record once, newest first, and a page past the end is empty", async () => {
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

  test("pageSize is cut to 500 and says so; defaults are 1 and 50", async () => {
    expect((await list(as.admin, { pageSize: 9999 })).pageSize).toBe(500);
    expect(await list(as.admin)).toMatchObject({ page: 1, pageSize: 50 });
  });

  test.each([
    "page=0",
    "page=-1",
    "page=1.5",
    "page=x",
    "page=",
    "pageSize=0",
    "pageSize=abc",
    "bbox=1,2",
    "dateFrom=2026-02-30",
    "page=1&page=2",
  ])("%s is refused with its parameter", async (query) => {
    const faults = problemOf(await as.admin("GET", `/api/prospects?${query}`), 400, "validation_failed");
    expect(faults[0]?.parameter).toBe(query.split("=")[0]);
  });

  test("the demo company's filters find what they name", async () => {
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
