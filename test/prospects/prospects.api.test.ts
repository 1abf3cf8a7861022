/** Tests prospects over HTTP: fields, status history, and who lists them. Who reaches a record is in test/http/matrix.api.test.ts. */
import { describe, expect, test } from "vitest";
import type { operations, ProspectPatch } from "../../docs/client/api.ts";
import { at, type Client, send, tokenOf } from "../harness/client.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

type ListQuery = NonNullable<operations["prospectsList"]["parameters"]["query"]>;
const list = async (client: Client, query: ListQuery = {}) =>
  dataOf(await client.GET("/api/prospects", { params: { query } }));

const change = (client: Client, id: number, body: ProspectPatch) =>
  client.PATCH("/api/prospects/{id}", { ...at(id), body });

const statusIdOf = async (value: string): Promise<number> => {
  const list = dataOf(await as.rep.GET("/api/statuses"));
  const found = list.find((status) => status.value === value);
  if (found === undefined) throw new Error(`no status ${value}`);
  return found.id;
};
const userIdOf = async (client: typeof as.rep): Promise<number> => dataOf(await client.GET("/api/me")).user.id;

describe("creating", () => {
  test("answers with the record and its Location, with null for omitted fields", async () => {
    const answer = await as.admin.POST("/api/prospects", {
      body: {
        name: "Ada",
        lat: 39.7,
        lng: -105,
        customFieldData: { roof: "tile", n: 1e300 },
      },
    });
    const made = dataOf(answer, 201);
    expect(answer.response.headers.get("location")).toBe(`/api/prospects/${made.id}`);
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
    const read = dataOf(await as.admin.GET("/api/prospects/{id}", at(made.id)));
    expect(read).toMatchObject({ ...made, appointments: [], notes: [], statusHistory: [] });
  });

  test("accepts an empty body and an inline address", async () => {
    const bare = await send("POST", "/api/prospects", {
      headers: { Authorization: `Bearer ${await tokenOf(as.admin.email)}` },
    });
    expect(bare.status).toBe(201);
    const address = { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" };
    const made = dataOf(await as.admin.POST("/api/prospects", { body: { address } }), 201);
    expect(made.address).toMatchObject({
      ...address,
      address2: null,
      formattedAddress: "1437 Bannock St, Denver, CO 80202",
    });
    const addressId = present(made.address).id;
    const second = dataOf(await as.admin.POST("/api/prospects", { body: { addressId } }), 201);
    expect(second.address).toEqual(made.address);
  });

  test("ignores fields that the server owns", async () => {
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
    const made = dataOf(await as.admin.POST("/api/prospects", { body: { name: "Ada", ...hostile } }), 201);
    expect(made.id).not.toBe(1);
    expect(Object.keys(made)).not.toContain("companyId");
    expect(made.createdAt > "2026").toBe(true);
    dataOf(await as.admin.GET("/api/prospects/{id}", at(made.id)));
  });

  test("a restricted rep becomes the assignee", async () => {
    const made = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Mine" } }), 201);
    expect(made.assignedTo?.email).toBe(as.rep.email);
    expect(dataOf(await as.viewer.POST("/api/prospects", { body: {} }), 201).assignedTo).toBeNull();
  });

  test("with a status creates the first history entry", async () => {
    const currentStatusId = await statusIdOf("New");
    const made = dataOf(await as.rep.POST("/api/prospects", { body: { currentStatusId } }), 201);
    const { statusHistory } = dataOf(await as.rep.GET("/api/prospects/{id}", at(made.id)));
    expect(statusHistory.map(({ status, previousStatus }) => [previousStatus?.value, status?.value])).toEqual([
      [undefined, "New"],
    ]);
  });

  test.each([
    ["currentStatusId", 1],
    ["assignedToUserId", 1],
    ["addressId", 1],
  ])("an unknown %s is an error of that field, and nothing is created", async (field, id) => {
    const name = uniqueName();
    const faults = problemOf(
      await as.admin.POST("/api/prospects", { body: { name, [field]: id } }),
      400,
      "validation_failed",
    );
    expect(faults[0]?.pointer).toBe(`/${field}`);
    const { items } = await list(as.admin, { pageSize: 500 });
    expect(items.some((item) => item.name === name)).toBe(false);
  });

  test("another company's status, user and address are unknown", async () => {
    const foreignStatus = present(dataOf(await as.otherOwner.GET("/api/statuses"))[0]).id;
    const foreignUser = await userIdOf(as.otherRep);
    for (const body of [{ currentStatusId: foreignStatus }, { assignedToUserId: foreignUser }]) {
      problemOf(await as.admin.POST("/api/prospects", { body }), 400, "validation_failed");
    }
  });
});

describe("changing", () => {
  test("only sent fields change, null clears a field, and an empty patch changes nothing", async () => {
    const made = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada", phoneNumber: "1" } }), 201);
    const same = dataOf(await change(as.rep, made.id, {}));
    expect(same).toEqual(made);
    expect(dataOf(await change(as.rep, made.id, { name: "Ada" }))).toEqual(made);
    const changed = dataOf(await change(as.rep, made.id, { name: "Bea", phoneNumber: null }));
    expect(changed).toEqual({ ...made, name: "Bea", phoneNumber: null, updatedAt: changed.updatedAt });
    expect(changed.updatedAt >= made.updatedAt).toBe(true);
  });

  test("each change of status adds one history entry, newest first; the same status again adds no entry", async () => {
    const [first, second] = [await statusIdOf("New"), await statusIdOf("Sold")];
    const { id } = dataOf(await as.rep.POST("/api/prospects", { body: { currentStatusId: first } }), 201);
    for (const currentStatusId of [first, second, second, null, null, first]) {
      dataOf(await change(as.rep, id, { currentStatusId }));
    }
    const { statusHistory } = dataOf(await as.rep.GET("/api/prospects/{id}", at(id)));
    const steps = statusHistory.map(
      ({ previousStatus, status }) => `${previousStatus?.value ?? "-"} > ${status?.value ?? "-"}`,
    );
    expect(steps).toEqual(["- > New", "Sold > -", "New > Sold", "- > New"]);
  });

  test("twenty concurrent reps lose no field and no history entry", async () => {
    const statuses = dataOf(await as.rep.GET("/api/statuses")).slice(0, 8);
    const { id } = dataOf(await as.rep.POST("/api/prospects", { body: {} }), 201);
    const fields = ["name", "phoneNumber", "secondaryPhoneNumber", "source", "sourceId"] as const;
    const patches = [
      ...fields.map((field) => ({ [field]: field })),
      ...statuses.map((status) => ({ currentStatusId: status.id })),
      ...Array.from({ length: 7 }, (_, i) => ({ lat: i, lng: i })),
    ];
    const answers = await Promise.all(patches.map((patch) => change(as.rep, id, patch)));
    expect(answers.map(statusOf)).toEqual(patches.map(() => 200));
    const detail = dataOf(await as.rep.GET("/api/prospects/{id}", at(id)));
    for (const field of fields) expect(detail[field]).toBe(field);
    expect(detail.lat).toBe(detail.lng);
    expect(detail.statusHistory).toHaveLength(statuses.length);
    // Each entry of the history must begin with the status at which the previous entry ends.
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

test("a rep lists only own prospects, a user with canViewAllProspects lists all of them, another company none", async () => {
  const { id } = dataOf(await as.rep.POST("/api/prospects", { body: {} }), 201);
  const mine = await list(as.rep, { pageSize: 500 });
  const all = await list(as.viewer, { pageSize: 1 });
  expect(mine.items.some((item) => item.id === id)).toBe(true);
  expect(mine.items.every((item) => item.assignedTo?.email === as.rep.email)).toBe(true);
  expect(mine.total).toBeLessThan(all.total);
  for (const client of [as.rep2, as.otherOwner]) {
    expect((await list(client, { pageSize: 500 })).items.some((item) => item.id === id)).toBe(false);
  }
});
