/**
 * Tests prospects, addresses, and the creation with `matchBy` over HTTP. addresses.test.ts and test/http/matrix.api.test.ts test who may
 * read and change these records.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { AddressPatch, NewProspect, operations, ProspectPatch } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "../harness/shapes.ts";
import { newTeam, statusIdOf } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

const change = (client: Client, id: number, body: ProspectPatch) =>
  client.PATCH("/api/prospects/{id}", { ...at(id), body });

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
    const [first, second] = [await statusIdOf(as.rep, "New"), await statusIdOf(as.rep, "Sold")];
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

const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

test("addresses are created, read and changed; a computed text follows the change", async () => {
  const answer = await as.rep.POST("/api/addresses", { body: home });
  const made = dataOf(answer, 201);
  const path = `/api/addresses/${made.id}`;
  expect(answer.response.headers.get("location")).toBe(path);
  expect(made).toEqual({ id: made.id, ...home, address2: null, formattedAddress: "1 Main St, Denver, CO 80202" });
  expect(dataOf(await as.viewer.GET("/api/addresses/{id}", at(made.id)))).toEqual(made);
  const formatted = async (body: AddressPatch) =>
    dataOf(await as.rep2.PATCH("/api/addresses/{id}", { ...at(made.id), body })).formattedAddress;
  expect(await formatted({ address2: "Apt 4" })).toBe("1 Main St, Apt 4, Denver, CO 80202");
  expect(await formatted({ formattedAddress: "The corner" })).toBe("The corner");
  expect(await formatted({ zip: "80203" })).toBe("The corner");
  expect(await formatted({ formattedAddress: null, address2: null })).toBe("1 Main St, Denver, CO 80203");
  const wrong = await as.rep.POST("/api/addresses", { body: { ...home, state: "x".repeat(256) } });
  expect(problemOf(wrong, 400, "validation_failed")).toMatchObject([{ pointer: "/state" }]);
});

test("an address that an import has created can be changed", async () => {
  const name = uniqueName();
  const file = `name,address1,city,state,zip\n${name},1 Main St,Denver,CO,80202\n`;
  expect((await as.admin.send("POST", "/api/prospects/import", { body: csvForm(file) })).status).toBe(200);
  const { items } = dataOf(await as.admin.GET("/api/prospects", { params: { query: { search: name } } }));
  const address = present(items[0]?.address);
  const body = { zip: "80203" };
  expect(dataOf(await as.admin.PATCH("/api/addresses/{id}", { ...at(address.id), body }))).toMatchObject(body);
  const { address: shown } = dataOf(await as.admin.GET("/api/prospects/{id}", at(present(items[0]).id)));
  expect(shown).toMatchObject(body);
});

test("a page of addresses names the next page, and the last page names none", async () => {
  for (let i = 0; i < 3; i++) dataOf(await as.rep.POST("/api/addresses", { body: home }), 201);
  const page = async (query: { limit?: number; after?: number }) => {
    const answer = await as.viewer.GET("/api/addresses", { params: { query } });
    return { ids: dataOf(answer).map(({ id }) => id), link: answer.response.headers.get("link") };
  };
  const { ids, link } = await page({ limit: 2 });
  expect(link).toBe(`<?after=${ids[1]}&limit=2>; rel="next"`);
  expect((await page({ after: ids[1] ?? 0 })).link).toBeNull();
  expect((await page({ after: 2 ** 53 - 1, limit: 10 ** 15 })).ids).toEqual([]);
});

test("an address of a hidden or deleted prospect is not listed; its change emits prospect.updated, and a refused change emits nothing", async () => {
  const { id, address } = dataOf(await as.admin.POST("/api/prospects", { body: { address: home } }), 201);
  const place = at(present(address).id);
  const registrations = [{ event: "prospect.updated", filter: { "prospect.id": id } }];
  const { receiver } = await subscribe(as.admin, registrations);
  problemOf(await as.rep.PATCH("/api/addresses/{id}", { ...place, body: { zip: "1" } }), 404, "not_found");
  const listed = async () => dataOf(await as.rep.GET("/api/addresses")).map((one) => one.id);
  expect(await listed()).not.toContain(present(address).id);
  const changed = dataOf(await as.viewer.PATCH("/api/addresses/{id}", { ...place, body: { zip: "80299" } }));
  await receiver.until(1);
  expect(receiver.receipts.map(({ event }) => event.data)).toMatchObject([
    { changedFields: ["address"], prospect: { id, address: changed } },
  ]);
  dataOf(await as.admin.DELETE("/api/prospects/{id}", at(id)));
  expect(await listed()).not.toContain(present(address).id);
});

type Query = NonNullable<operations["prospectsCreate"]["parameters"]["query"]>;
const find = (client: Client, query: Query, body: NewProspect, headers: Record<string, string> = {}) =>
  client.POST("/api/prospects", { params: { query }, body, headers });

test("the first call answers 201 with a Location, and later calls answer 200 with the same prospect, updated or unchanged", async () => {
  const sourceId = uniqueName();
  const first = await find(as.owner, { matchBy: "sourceId" }, { sourceId, name: "A" });
  const made = dataOf(first, 201);
  expect(first.response.headers.get("location")).toBe(`/api/prospects/${made.id}`);
  const second = await find(as.owner, { matchBy: "sourceId" }, { sourceId, name: "B" });
  expect(dataOf(second)).toEqual(made);
  expect(second.response.headers.get("location")).toBeNull();
  const changed = dataOf(await find(as.owner, { matchBy: "sourceId", onMatch: "update" }, { sourceId, name: "C" }));
  expect(changed).toMatchObject({ id: made.id, name: "C" });
  expect(dataOf(await as.owner.GET("/api/prospects/{id}", at(made.id)))).toMatchObject({ name: "C" });
});

test("an update gives the found prospect and its upcoming appointments to another user", async () => {
  const sourceId = uniqueName();
  const made = dataOf(await find(as.owner, { matchBy: "sourceId" }, { sourceId }), 201);
  const visit = { title: "Visit", startAt: new Date(Date.now() + 86_400_000).toISOString() };
  dataOf(await as.owner.POST("/api/prospects/{id}/appointments", { ...at(made.id), body: visit }), 201);
  for (const client of [as.rep, as.rep2]) {
    const { user } = dataOf(await client.GET("/api/me"));
    const change = { sourceId, assignedToUserId: user.id };
    const { assignedTo } = dataOf(await find(as.owner, { matchBy: "sourceId", onMatch: "update" }, change));
    expect(assignedTo?.id).toBe(user.id);
    expect(dataOf(await client.GET("/api/appointments")).map(({ prospectId }) => prospectId)).toEqual([made.id]);
  }
});

test("several matches are a conflict with their ids", async () => {
  const sourceId = uniqueName();
  const ids = [0, 1].map(async () => dataOf(await as.owner.POST("/api/prospects", { body: { sourceId } }), 201).id);
  const [one, two] = [await ids[0], await ids[1]];
  const refused = await find(as.owner, { matchBy: "sourceId" }, { sourceId });
  problemOf(refused, 409, "conflict");
  expect(new Set(refused.error?.ids)).toEqual(new Set([one, two]));
});

test("a repeated idempotency key answers the first status again", async () => {
  const [sourceId, body] = [uniqueName(), { name: "A" }];
  const keys = [0, 1].map(() => ({ "Idempotency-Key": randomUUID() }));
  for (const _ of [0, 1]) {
    for (const [i, headers] of keys.entries()) {
      const { response } = await find(as.owner, { matchBy: "sourceId" }, { ...body, sourceId }, headers);
      expect(response.status).toBe(i === 0 ? 201 : 200);
    }
  }
});

test("a client id is found by its user; without matchBy it is a conflict that names a visible prospect only", async () => {
  const clientRecordId = randomUUID();
  const { user } = dataOf(await as.rep2.GET("/api/me"));
  const made = dataOf(await find(as.rep, { matchBy: "clientRecordId" }, { clientRecordId }), 201);
  expect(dataOf(await find(as.rep, { matchBy: "clientRecordId" }, { clientRecordId })).id).toBe(made.id);
  const known = await as.rep.POST("/api/prospects", { body: { clientRecordId } });
  problemOf(known, 409, "conflict");
  expect(known.error?.existingId).toBe(made.id);
  dataOf(await as.owner.PATCH("/api/prospects/{id}", { ...at(made.id), body: { assignedToUserId: user.id } }));
  for (const query of [{}, { matchBy: "clientRecordId" }] as const) {
    const unseen = await find(as.rep, query, { clientRecordId });
    problemOf(unseen, 409, "conflict");
    expect(unseen.error).not.toHaveProperty("existingId");
  }
});

test.each([
  [{ matchBy: "sourceId" }, {}, "/sourceId"],
  [{ matchBy: "sourceId" }, { sourceId: null }, "/sourceId"],
  [{ matchBy: "sourceId" }, { sourceId: " \u200b" }, "/sourceId"],
  [{ matchBy: "emailAddress" }, { sourceId: "a" }, "/emailAddress"],
  [{ matchBy: "clientRecordId" }, { sourceId: "a" }, "/clientRecordId"],
] as const)("%j with the body %j is refused with the pointer %s", async (query, body, pointer) => {
  expect(problemOf(await find(as.owner, query, body), 400, "validation_failed")).toMatchObject([{ pointer }]);
});

test.each([
  ["matchBy=id", "matchBy"],
  ["matchBy=name", "matchBy"],
  ["matchBy=sourceId&onMatch=create", "onMatch"],
  ["onMatch=skip", "onMatch"],
])("the query %s is refused", async (query, parameter) => {
  const answer = await as.owner("POST", `/api/prospects?${query}`, { sourceId: "a" });
  expect(problemOf(answer, 400, "validation_failed")).toMatchObject([{ parameter }]);
});
