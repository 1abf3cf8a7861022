/** Tests that a blank text in a body counts as null, as missing or as not sent, and that every other text keeps its white space. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { create, operation, results } from "../sync/operations/push.ts";
import { newRecords, pathOf } from "./matrix-stage.ts";
import { bodyFor } from "./matrix-table.ts";

const as = await newTeam();
const mine = await newRecords(as.owner);
const blanks = ["", " ", "\t\n\u0085", "\u00a0\u3000", "\u200b\ufeff", " ".repeat(60)];
/** Texts that are not blank. The first one contains characters that are neither white space nor visible. */
const others = [" \u200d ", " a\u200b ", "\ufeffb c "];
const Fields = z.record(z.string(), z.unknown());
const fill = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };
const all = (fields: readonly string[], text: (field: string) => unknown): Record<string, unknown> =>
  Object.fromEntries(fields.map((field) => [field, text(field)]));

/** Sends the fields. A POST also has the fields that the route requires. */
const sent = (method: "POST" | "PATCH", path: string, fields: object) =>
  as.owner(method, pathOf({ path }, mine), { ...(method === "POST" && bodyFor({ method, path })), ...fields });

const appointments = ["/api/prospects/{id}/appointments", "/api/appointments/{id}"] as const;
const registrations = [
  "/api/webhooks/{id}/registrations",
  "/api/webhooks/{id}/registrations/{registrationId}",
] as const;
const ofProspects = ["name", "phoneNumber", "secondaryPhoneNumber", "emailAddress", "sourceId"];

test.each([
  ["/api/prospects", "/api/prospects/{id}", ofProspects],
  [...appointments, ["location", "notes"]],
  ["/api/addresses", "/api/addresses/{id}", ["address2"]],
  [...registrations, ["manualTriggerButtonText"]],
] as const)("%s, %s: each of %j is null if it is blank, and otherwise stays as it is", async (path, one, fields) => {
  const none = all(fields, () => null);
  const filled = all(fields, (field) => (field === "emailAddress" ? "a@example.com" : "filled"));
  for (const blank of blanks) {
    const body = all(fields, () => blank);
    expect(bodyOf(await sent("POST", path, body), 201, Fields)).toMatchObject(none);
    expect(bodyOf(await sent("PATCH", one, filled), 200, Fields)).toMatchObject(filled);
    expect(bodyOf(await sent("PATCH", one, body), 200, Fields)).toMatchObject(none);
  }
  for (const other of others) {
    const { emailAddress: _, ...body } = all(fields, () => other);
    expect(bodyOf(await sent("PATCH", one, body), 200, Fields)).toMatchObject(body);
  }
});

test.each([
  ["/api/prospects/{id}/notes", "/api/notes/{id}", ["body"]],
  [...appointments, ["title"]],
  ["/api/addresses", "/api/addresses/{id}", ["address1", "city", "state", "zip"]],
  ["/api/users", "/api/users/{id}", ["firstName", "lastName"]],
  ["/api/users", undefined, ["email"]],
  ["/api/statuses", "/api/statuses/{id}", ["value"]],
  ["/api/tags", "/api/tags/{id}", ["value"]],
  ["/api/webhooks", "/api/webhooks/{id}", ["name"]],
  [...registrations, ["event"]],
] as const)("%s, %s: each of %j is missing if it is blank", async (path, one, fields) => {
  const pointers = fields.map((field) => ({ pointer: `/${field}` }));
  for (const blank of blanks.slice(0, 5)) {
    const body = all(fields, () => blank);
    expect(problemOf(await sent("POST", path, body), 400, "validation_failed")).toMatchObject(pointers);
    if (one === undefined) continue;
    expect(problemOf(await sent("PATCH", one, body), 400, "validation_failed")).toMatchObject(pointers);
  }
});

test("a blank source or name of a territory counts as not sent", async () => {
  for (const blank of blanks.slice(3, 5)) {
    const made = bodyOf(await as.owner("POST", "/api/prospects", { source: blank }), 201, Fields);
    expect(made.source).toBe("api");
    const path = `/api/prospects/${made.id}`;
    expect(bodyOf(await as.owner("PATCH", path, { source: "door" }), 200, Fields).source).toBe("door");
    expect(bodyOf(await as.owner("PATCH", path, { source: blank }), 200, Fields).source).toBe("door");
    const territory = bodyOf(await as.owner("POST", "/api/territories", { name: blank }), 201, Fields);
    expect(territory.name).toBe("Untitled Territory");
    const own = `/api/territories/${territory.id}`;
    expect(bodyOf(await as.owner("PATCH", own, { name: "N" }), 200, Fields).name).toBe("N");
    expect(bodyOf(await as.owner("PATCH", own, { name: blank }), 200, Fields).name).toBe("N");
  }
});

test("an address of which all parts are blank is no address, and one with a blank required part is refused", async () => {
  for (const blank of blanks.slice(3, 5)) {
    const none = { address1: blank, address2: null, city: blank, state: blank, zip: blank, formattedAddress: blank };
    const made = bodyOf(await as.owner("POST", "/api/prospects", { address: none }), 201, Fields);
    expect(made.address).toBeNull();
    const path = `/api/prospects/${made.id}`;
    expect(bodyOf(await as.owner("PATCH", path, { address: fill }), 200, Fields).address).toMatchObject(fill);
    problemOf(await as.owner("PATCH", path, { address: { ...none, city: "Denver" } }), 400, "validation_failed");
    problemOf(await as.owner("PATCH", path, { address: { ...none, formattedAddress: "x" } }), 400, "validation_failed");
    expect(
      bodyOf(await as.owner("PATCH", path, { address: { ...none, addressId: mine.addresses } }), 200, Fields).address,
    ).toBeNull();
    problemOf(await as.owner("POST", "/api/addresses", none), 400, "validation_failed");
  }
  problemOf(await as.owner("POST", "/api/prospects", { address: {} }), 400, "validation_failed");
});

test("operations of a device read blank texts in the same way", async () => {
  const clientRecordId = randomUUID();
  const note = { clientRecordId, fields: { body: " \u200b" } };
  const made = await results(as.owner, [
    create({ name: "\u00a0", source: " ", address: { address1: "" } }, clientRecordId),
    operation("prospect.update", { clientRecordId, fields: { phoneNumber: " " } }),
    operation("note.create", note),
  ]);
  expect(made).toMatchObject([
    { outcome: "applied" },
    { outcome: "applied" },
    { outcome: "rejected", problem: { errors: [{ pointer: "/operations/2/fields/body" }] } },
  ]);
  const shown = bodyOf(await as.owner("GET", `/api/prospects/${made[0]?.id}`), 200, Fields);
  expect(shown).toMatchObject({ name: null, phoneNumber: null, source: "api", address: null });
});

test("custom fields and search texts stay as sent", async () => {
  const customFieldData = { a: " ", b: [""], " ": "\u200b" };
  const made = bodyOf(await as.owner("POST", "/api/prospects", { customFieldData }), 201, Fields);
  expect(made.customFieldData).toEqual(customFieldData);
});

test("statuses, tags, cities and reps are compared with each run of blanks as one", async () => {
  const [word, rep] = [uniqueName(), uniqueName()];
  const value = `${word}  Two`;
  const status = bodyOf(await as.owner("POST", "/api/statuses", { value }), 201, Identified);
  const tag = bodyOf(await as.owner("POST", "/api/tags", { value }), 201, Identified);
  const named = { firstName: rep, lastName: "van\u00a0 Dyk" };
  const assignedToUserId = bodyOf(await sent("POST", "/api/users", named), 201, Identified).id;
  const address = { ...fill, city: `${word}\u3000 York` };
  const body = { currentStatusId: status.id, assignedToUserId, address };
  const { id } = bodyOf(await as.owner("POST", "/api/prospects", body), 201, Identified);
  expect((await as.owner("PUT", `/api/prospects/${id}/tags`, { tagIds: [tag.id] })).status).toBe(200);
  for (const path of ["/api/statuses", "/api/tags"]) {
    problemOf(await as.owner("POST", path, { value: `${word} two` }), 409, "conflict");
  }
  for (const query of [
    `status=${word}%20two`,
    `status=%20${word}%09%E2%80%8B%20TWO`,
    `tagId=${word}%C2%A0two`,
    `city=${word}%20york`,
    `city=%EF%BB%BF${word}%20%20%20york`,
    `rep=${rep}%20van%20dyk`,
  ]) {
    const list = z.object({ items: z.array(Identified) });
    expect([query, bodyOf(await as.owner("GET", `/api/prospects?${query}`), 200, list).items]).toMatchObject([
      query,
      [{ id }],
    ]);
  }
});
