/** Prospects over HTTP: what is written is read back, history is exact, and nobody sees what is not theirs. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { demo, send, tokenOf } from "./client.ts";
import { bodyOf, DetailBody, Identified, Page, ProspectBody, problemOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const Status = z.looseObject({ id: z.number(), value: z.string() });
const Statuses = z.array(Status);
const Me = z.object({ user: Identified });

const statusIdOf = async (value: string): Promise<number> => {
  const list = bodyOf(await as.rep("GET", "/api/statuses"), 200, Statuses);
  const found = list.find((status) => status.value === value);
  if (found === undefined) throw new Error(`no status ${value}`);
  return found.id;
};
const userIdOf = async (client: typeof as.rep): Promise<number> =>
  bodyOf(await client("GET", "/api/me"), 200, Me).user.id;

describe("creating", () => {
  test("answers with the record, where it stands, and what was not given as null", async () => {
    const answer = await as.admin("POST", "/api/prospects", {
      name: "Ada",
      lat: 39.7,
      lng: -105,
      customFieldData: { roof: "tile", n: 1e300 },
    });
    const made = bodyOf(answer, 201, ProspectBody);
    expect(answer.headers.get("location")).toBe(`/api/prospects/${made.id}`);
    expect(made).toMatchObject({
      name: "Ada",
      phoneNumber: null,
      lat: 39.7,
      lng: -105,
      source: "api",
      customFieldData: { roof: "tile", n: 1e300 },
      address: null,
      currentStatus: null,
      assignedTo: null,
      tags: [],
      appointments: [],
    });
    const read = bodyOf(await as.admin("GET", `/api/prospects/${made.id}`), 200, DetailBody);
    expect(read).toMatchObject({ ...made, appointments: [], notes: [], statusHistory: [] });
  });

  test("takes no body at all, and an address in line", async () => {
    const bare = await send("POST", "/api/prospects", {
      headers: { Authorization: `Bearer ${await tokenOf(as.admin.email)}` },
    });
    expect(bare.status).toBe(201);
    const address = { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" };
    const made = bodyOf(await as.admin("POST", "/api/prospects", { address }), 201, ProspectBody);
    expect(made.address).toMatchObject({
      ...address,
      address2: null,
      formattedAddress: "1437 Bannock St, Denver, CO 80202",
    });
    const addressId = z.parse(z.looseObject({ id: z.number() }), made.address).id;
    const second = bodyOf(await as.admin("POST", "/api/prospects", { addressId }), 201, ProspectBody);
    expect(second.address).toEqual(made.address);
  });

  test("ignores fields that are the server's", async () => {
    const hostile = {
      id: 1,
      companyId: 999,
      createdAt: "2001-01-01",
      role: "owner",
      pk: "x",
      deletedAt: "now",
      version: 9,
      importId: "x",
    };
    const made = bodyOf(await as.admin("POST", "/api/prospects", hostile), 201, ProspectBody);
    expect(made.id).not.toBe(1);
    expect(Object.keys(made)).not.toContain("companyId");
    expect(made.createdAt > "2026").toBe(true);
    bodyOf(await as.admin("GET", `/api/prospects/${made.id}`), 200, DetailBody);
  });

  test("a rep without a wider view becomes the assignee", async () => {
    const made = bodyOf(await as.rep("POST", "/api/prospects", { name: "Mine" }), 201, ProspectBody);
    expect(made.assignedTo?.email).toBe(as.rep.email);
    expect(bodyOf(await as.viewer("POST", "/api/prospects", {}), 201, ProspectBody).assignedTo).toBeNull();
  });

  test("with a status begins the history", async () => {
    const currentStatusId = await statusIdOf("New");
    const made = bodyOf(await as.rep("POST", "/api/prospects", { currentStatusId }), 201, ProspectBody);
    const { statusHistory } = bodyOf(await as.rep("GET", `/api/prospects/${made.id}`), 200, DetailBody);
    expect(statusHistory.map(({ status, previousStatus }) => [previousStatus?.value, status?.value])).toEqual([
      [undefined, "New"],
    ]);
  });

  test.each([
    ["currentStatusId", 1],
    ["assignedToUserId", 1],
    ["addressId", 1],
  ])("a %s that names nothing is a fault of that field, and nothing is made", async (field, id) => {
    const name = uniqueName();
    const faults = problemOf(await as.admin("POST", "/api/prospects", { name, [field]: id }), 400, "validation_failed");
    expect(faults[0]?.pointer).toBe(`/${field}`);
    const list = bodyOf(await as.admin("GET", "/api/prospects?pageSize=500"), 200, Page);
    expect(list.items.some((item) => item.name === name)).toBe(false);
  });

  test("another company's status, user and address name nothing", async () => {
    const foreignStatus = bodyOf(await as.otherOwner("GET", "/api/statuses"), 200, Statuses)[0]?.id;
    const foreignUser = await userIdOf(as.otherRep);
    for (const body of [{ currentStatusId: foreignStatus }, { assignedToUserId: foreignUser }]) {
      problemOf(await as.admin("POST", "/api/prospects", body), 400, "validation_failed");
    }
  });
});

describe("changing", () => {
  test("only what is sent changes; null clears; an empty patch bumps nothing", async () => {
    const made = bodyOf(await as.rep("POST", "/api/prospects", { name: "Ada", phoneNumber: "1" }), 201, ProspectBody);
    const path = `/api/prospects/${made.id}`;
    const same = bodyOf(await as.rep("PATCH", path, {}), 200, ProspectBody);
    expect(same).toEqual(made);
    expect(bodyOf(await as.rep("PATCH", path, { name: "Ada" }), 200, ProspectBody)).toEqual(made);
    const changed = bodyOf(await as.rep("PATCH", path, { name: "Bea", phoneNumber: null }), 200, ProspectBody);
    expect(changed).toEqual({ ...made, name: "Bea", phoneNumber: null, updatedAt: changed.updatedAt });
    expect(changed.updatedAt >= made.updatedAt).toBe(true);
  });

  test("each real change of status is one entry, newest first; the same status again is none", async () => {
    const [first, second] = [await statusIdOf("New"), await statusIdOf("Sold")];
    const { id } = bodyOf(await as.rep("POST", "/api/prospects", { currentStatusId: first }), 201, ProspectBody);
    for (const currentStatusId of [first, second, second, null, null, first]) {
      bodyOf(await as.rep("PATCH", `/api/prospects/${id}`, { currentStatusId }), 200, ProspectBody);
    }
    const { statusHistory } = bodyOf(await as.rep("GET", `/api/prospects/${id}`), 200, DetailBody);
    const steps = statusHistory.map(
      ({ previousStatus, status }) => `${previousStatus?.value ?? "-"} > ${status?.value ?? "-"}`,
    );
    expect(steps).toEqual(["- > New", "Sold > -", "New > Sold", "- > New"]);
  });

  test("twenty reps at once lose no field and no history", async () => {
    const statuses = bodyOf(await as.rep("GET", "/api/statuses"), 200, Statuses).slice(0, 8);
    const { id } = bodyOf(await as.rep("POST", "/api/prospects", {}), 201, ProspectBody);
    const path = `/api/prospects/${id}`;
    const fields = ["name", "phoneNumber", "secondaryPhoneNumber", "source", "sourceId"];
    const patches = [
      ...fields.map((field) => ({ [field]: field })),
      ...statuses.map((status) => ({ currentStatusId: status.id })),
      ...Array.from({ length: 7 }, (_, i) => ({ lat: i, lng: i })),
    ];
    const answers = await Promise.all(patches.map((patch) => as.rep("PATCH", path, patch)));
    expect(answers.map(({ status }) => status)).toEqual(patches.map(() => 200));
    const detail = bodyOf(await as.rep("GET", path), 200, DetailBody);
    for (const field of fields) expect(detail[field]).toBe(field);
    expect(detail.lat).toBe(detail.lng);
    expect(detail.statusHistory).toHaveLength(statuses.length);
    // Each entry begins where the one before it ended.
    const chain = detail.statusHistory.toReversed();
    chain.reduce(
      (before, entry) => {
        expect(entry.previousStatus?.value).toBe(before);
        return entry.status?.value;
      },
      undefined as string | undefined,
    );
    expect(detail.currentStatus?.value).toBe(chain.at(-1)?.status?.value);
  });
});

describe("deleting", () => {
  test("hides the record at once from every read and write", async () => {
    const { id } = bodyOf(await as.rep("POST", "/api/prospects", {}), 201, ProspectBody);
    const path = `/api/prospects/${id}`;
    expect(bodyOf(await as.rep("DELETE", path), 200, Identified)).toEqual({ id });
    problemOf(await as.rep("GET", path), 404, "not_found");
    problemOf(await as.rep("PATCH", path, { name: "x" }), 404, "not_found");
    problemOf(await as.rep("DELETE", path), 404, "not_found");
    const list = bodyOf(await as.admin("GET", "/api/prospects?pageSize=500"), 200, Page);
    expect(list.items.some((item) => item.id === id)).toBe(false);
  });
});

describe("visibility", () => {
  test("a rep sees own prospects only; who may view all sees all; another company sees none", async () => {
    const { id } = bodyOf(await as.rep("POST", "/api/prospects", {}), 201, ProspectBody);
    const path = `/api/prospects/${id}`;
    for (const client of [as.owner, as.admin, as.viewer, as.rep]) expect((await client("GET", path)).status).toBe(200);
    for (const client of [as.rep2, as.importer, as.otherOwner, as.otherRep]) {
      problemOf(await client("GET", path), 404, "not_found");
      problemOf(await client("PATCH", path, { name: "stolen" }), 404, "not_found");
      problemOf(await client("PATCH", path, {}), 404, "not_found");
      problemOf(await client("DELETE", path), 404, "not_found");
    }
    const mine = bodyOf(await as.rep("GET", "/api/prospects?pageSize=500"), 200, Page);
    const all = bodyOf(await as.viewer("GET", "/api/prospects?pageSize=1"), 200, Page);
    expect(mine.items.every((item) => z.parse(ProspectBody, item).assignedTo?.email === as.rep.email)).toBe(true);
    expect(mine.total).toBeLessThan(all.total);
    expect(
      bodyOf(await as.otherOwner("GET", "/api/prospects?pageSize=500"), 200, Page).items.some((item) => item.id === id),
    ).toBe(false);
  });

  test("filters by representative are for admins; from a sales user they are ignored", async () => {
    const rep2 = await userIdOf(as.rep2);
    for (const client of [as.rep2, as.rep2, as.rep])
      bodyOf(await client("POST", "/api/prospects", {}), 201, Identified);
    const count = async (client: typeof as.rep, query: string) =>
      bodyOf(await client("GET", `/api/prospects?${query}`), 200, Page).total;
    expect(await count(as.viewer, `assignedToUserId=${rep2}`)).toBe(await count(as.viewer, ""));
    expect(await count(as.admin, `assignedToUserId=${rep2}`)).toBe(2);
    expect(await count(as.admin, "rep=rita%20rep")).toBe(2);
    expect(await count(as.admin, "")).toBeGreaterThan(2);
    expect(await count(as.viewer, "assignedToUserId=nobody")).toBe(await count(as.viewer, ""));
    problemOf(await as.admin("GET", "/api/prospects?assignedToUserId=1,x"), 400, "validation_failed");
  });
});

describe("listing", () => {
  test("pages visit each record once, newest first, and a page past the end is empty", async () => {
    const seen: { id: number; createdAt: string }[] = [];
    let total = 0;
    for (let page = 1; ; page++) {
      const list = bodyOf(await demo.otherOwner("GET", `/api/prospects?page=${page}&pageSize=37`), 200, Page);
      total = list.total;
      if (list.items.length === 0) break;
      seen.push(...list.items.map((item) => z.parse(ProspectBody, item)));
    }
    expect(seen).toHaveLength(total);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(total);
    const sorted = seen.toSorted((a, b) =>
      a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : b.id - a.id,
    );
    expect(seen.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id));
  });

  test("pageSize is cut to 500 and says so; defaults are 1 and 50", async () => {
    expect(bodyOf(await as.admin("GET", "/api/prospects?pageSize=9999"), 200, Page).pageSize).toBe(500);
    expect(bodyOf(await as.admin("GET", "/api/prospects"), 200, Page)).toMatchObject({ page: 1, pageSize: 50 });
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
    const total = async (query: string) =>
      bodyOf(await demo.otherOwner("GET", `/api/prospects?${query}`), 200, Page).total;
    const all = await total("");
    const statuses = bodyOf(await demo.otherOwner("GET", "/api/statuses"), 200, Statuses).map(({ value }) => value);
    const some = await total(`status=${encodeURIComponent(statuses.join(","))}`);
    expect(some).toBeGreaterThan(0);
    expect(some).toBeLessThan(all);
    expect(await total("status=no%20such%20status")).toBe(0);
    expect((await total("city=phoenix")) + (await total("city=Tempe,Scottsdale,GLENDALE"))).toBe(200);
    expect(await total("bbox=-113,33,-111,34")).toBe(200);
    expect(await total("dateFrom=2026-01-01&dateTo=2025-01-01")).toBe(0);
    expect(await total("assignedToUserId=unassigned")).toBeGreaterThan(0);
  });
});
