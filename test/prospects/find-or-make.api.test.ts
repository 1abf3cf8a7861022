/** Tests over HTTP that POST /api/prospects finds a prospect by a key or creates it: status, body, conflicts and refusals. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { NewProspect, operations } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

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
