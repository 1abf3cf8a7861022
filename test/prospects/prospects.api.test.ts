/** Tests prospects over HTTP: fields and status history. test/http/matrix.api.test.ts tests who may read and change a prospect. */
import { describe, expect, test } from "vitest";
import type { ProspectPatch } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { dataOf, present, statusOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const change = (client: Client, id: number, body: ProspectPatch) =>
  client.PATCH("/api/prospects/{id}", { ...at(id), body });

const statusIdOf = async (value: string): Promise<number> => {
  const list = dataOf(await as.rep.GET("/api/statuses"));
  const found = list.find((status) => status.value === value);
  if (found === undefined) throw new Error(`no status ${value}`);
  return found.id;
};

describe("creating", () => {
  test("answers with the record and its Location, with null for omitted fields", async () => {
    const answer = await as.admin.POST("/api/prospects", {
      body: { name: "Ada", lat: 39.7, lng: -105, customFieldData: { roof: "tile", n: 1e300 } },
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
    expect((await as.admin.send("POST", "/api/prospects")).status).toBe(201);
    const address = { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" };
    const made = dataOf(await as.admin.POST("/api/prospects", { body: { address } }), 201);
    const formattedAddress = "1437 Bannock St, Denver, CO 80202";
    expect(made.address).toMatchObject({ ...address, address2: null, formattedAddress });
    const addressId = present(made.address).id;
    const second = dataOf(await as.admin.POST("/api/prospects", { body: { addressId } }), 201);
    expect(second.address).toEqual(made.address);
  });

  test("a restricted rep becomes the assignee", async () => {
    const made = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Mine" } }), 201);
    expect(made.assignedTo?.email).toBe(as.rep.email);
    expect(dataOf(await as.viewer.POST("/api/prospects", { body: {} }), 201).assignedTo).toBeNull();
  });
});

describe("changing", () => {
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
    const before = chain.slice(1).map(({ previousStatus }) => previousStatus?.value);
    expect(before).toEqual(chain.slice(0, -1).map(({ status }) => status?.value));
    expect(chain[0]?.previousStatus?.value).toBeUndefined();
    expect(detail.currentStatus?.value).toBe(chain.at(-1)?.status?.value);
  });
});
