/** Tests that a blank text in a body counts as null, as missing or as not sent, and that every other text keeps its white space. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { create, operation, results } from "../sync/operations/push.ts";

const as = await newTeam();
const blanks = ["", " ", "\t\n\u0085", "\u00a0\u3000", "\u200b\ufeff", " ".repeat(60)];
/** Texts that are not blank. The first one contains characters that are neither white space nor visible. */
const others = [" \u200d ", " a\u200b ", "\ufeffb c "];
const Fields = z.record(z.string(), z.unknown());
const fill = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

const prospect = dataOf(await as.owner.POST("/api/prospects", { body: {} }), 201);
const { id: noteId } = bodyOf(
  await as.owner("POST", `/api/prospects/${prospect.id}/notes`, { body: "x" }),
  201,
  Identified,
);
const appointments = `/api/prospects/${prospect.id}/appointments`;
const startAt = "2030-01-01T00:00:00Z";
const { id: appointmentId } = bodyOf(await as.owner("POST", appointments, { title: "x", startAt }), 201, Identified);
const { id: addressId } = bodyOf(await as.owner("POST", "/api/addresses", fill), 201, Identified);
const user = () => ({ email: `${randomUUID()}@example.com`, firstName: "A", lastName: "B", role: "sales" });
const { id: userId } = bodyOf(await as.owner("POST", "/api/users", user()), 201, Identified);
const webhook = { name: "w", url: "https://example.com/" };
const { id: webhookId } = bodyOf(await as.owner("POST", "/api/webhooks", webhook), 201, Identified);
const registrations = `/api/webhooks/${webhookId}/registrations`;
const registered = await as.owner("POST", registrations, { event: "e", triggerMode: "manual" });
const { id: registrationId } = bodyOf(registered, 201, Identified);

const [statusId, tagId] = [
  bodyOf(await as.owner("POST", "/api/statuses", { value: uniqueName() }), 201, Identified).id,
  bodyOf(await as.owner("POST", "/api/tags", { value: uniqueName() }), 201, Identified).id,
];
const all = (fields: readonly string[], text: (field: string) => unknown): Record<string, unknown> =>
  Object.fromEntries(fields.map((field) => [field, text(field)]));

const nullable = [
  [
    "/api/prospects",
    `/api/prospects/${prospect.id}`,
    {},
    ["name", "phoneNumber", "secondaryPhoneNumber", "emailAddress", "sourceId"],
  ],
  [appointments, `/api/appointments/${appointmentId}`, { title: "t", startAt }, ["location", "notes"]],
  ["/api/addresses", `/api/addresses/${addressId}`, fill, ["address2"]],
  [registrations, `${registrations}/${registrationId}`, { event: "e" }, ["manualTriggerButtonText"]],
] as const;

test.each(nullable)(
  "%s, %s %o: each of %j is null if it is blank, and otherwise stays as it is",
  async (path, one, body, fields) => {
    const none = all(fields, () => null);
    const filled = all(fields, (field) => (field === "emailAddress" ? "a@example.com" : "filled"));
    for (const blank of blanks) {
      const sent = all(fields, () => blank);
      expect(bodyOf(await as.owner("POST", path, { ...body, ...sent }), 201, Fields)).toMatchObject(none);
      expect(bodyOf(await as.owner("PATCH", one, filled), 200, Fields)).toMatchObject(filled);
      expect(bodyOf(await as.owner("PATCH", one, sent), 200, Fields)).toMatchObject(none);
    }
    for (const other of others) {
      const sent = all(
        fields.filter((field) => field !== "emailAddress"),
        () => other,
      );
      expect(bodyOf(await as.owner("PATCH", one, sent), 200, Fields)).toMatchObject(sent);
    }
  },
);

const required = [
  [`/api/prospects/${prospect.id}/notes`, `/api/notes/${noteId}`, {}, ["body"]],
  [appointments, `/api/appointments/${appointmentId}`, { startAt }, ["title"]],
  ["/api/addresses", `/api/addresses/${addressId}`, fill, ["address1", "city", "state", "zip"]],
  ["/api/users", `/api/users/${userId}`, user(), ["firstName", "lastName"]],
  ["/api/users", undefined, user(), ["email"]],
  ["/api/statuses", `/api/statuses/${statusId}`, {}, ["value"]],
  ["/api/tags", `/api/tags/${tagId}`, {}, ["value"]],
  ["/api/webhooks", `/api/webhooks/${webhookId}`, webhook, ["name"]],
  [registrations, `${registrations}/${registrationId}`, {}, ["event"]],
] as const;

test.each(required)("%s, %s %o: each of %j is missing if it is blank", async (path, one, body, fields) => {
  const pointers = fields.map((field) => ({ pointer: `/${field}` }));
  for (const blank of blanks.slice(0, 5)) {
    const sent = all(fields, () => blank);
    const made = await as.owner("POST", path, { ...body, ...sent });
    expect(problemOf(made, 400, "validation_failed")).toMatchObject(pointers);
    if (one === undefined) continue;
    expect(problemOf(await as.owner("PATCH", one, sent), 400, "validation_failed")).toMatchObject(pointers);
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
    expect(bodyOf(await as.owner("PATCH", path, { address: { ...none, addressId } }), 200, Fields).address).toBeNull();
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
  const named = { ...user(), firstName: rep, lastName: "van\u00a0 Dyk" };
  const assignedToUserId = bodyOf(await as.owner("POST", "/api/users", named), 201, Identified).id;
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
