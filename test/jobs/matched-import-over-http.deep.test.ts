/** Tests over HTTP that both kinds of import update matching prospects, send the same events as a PATCH, and refuse wrong options. */
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { bodyOf, dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";
import { Imported, postFile, uploadFile } from "./files-over-http.ts";

const as = await newTeam();

const post = (file: string, query: string, headers: Record<string, string> = {}) =>
  postFile(as.owner, file, query, headers);

test("both imports update a prospect, with the events of a PATCH and one event for the import", async () => {
  const [name, key] = [uniqueName(), uniqueName()];
  const old = `sourceId,name,lat,lng,address1,city,state,zip\n${key},${name},1,2,1 Main St,Denver,CO,80202\n`;
  const seeded = await post(old, "");
  expect(bodyOf(seeded, 200, Imported)).toMatchObject({ imported: 1, updated: 0 });
  const events = [
    "prospect.updated",
    "prospect.status_changed",
    "prospect.created",
    "note.created",
    "prospect.import_completed",
  ];
  const registrations = events.map((event) => ({ event }));
  const { receiver } = await subscribe(as.owner, registrations);
  const first = `sourceId,name,status,notes,tags,zip\n${key},${name} 2,Sold,called,${uniqueName()},00501\n`;
  const headers = { "Idempotency-Key": uniqueName() };
  const result = bodyOf(await post(first, "?matchBy=sourceId&onMatch=update", headers), 200, Imported);
  expect(result).toMatchObject({ imported: 0, updated: 1, skipped: 0, errors: [] });
  expect(bodyOf(await post(first, "?matchBy=sourceId&onMatch=update", headers), 200, Imported)).toEqual(result);
  problemOf(await post(first, "?matchBy=sourceId&onMatch=skip", headers), 422, "idempotency_mismatch");
  const second = `sourceId,name,status,lat,lng\n${key},${name} 3,New,,\n${key}-b,${name} new,,1,2\n${key}-b,,,,\n`;
  const job = await uploadFile(as.owner, second, { matchBy: "sourceId", onMatch: "update" });
  expect(job).toMatchObject({ state: "completed", processed: 3, imported: 1, updated: 1, skipped: 1, written: 2 });
  await receiver.until(7);
  const counts = Map.groupBy(receiver.receipts, ({ event }) => event.event);
  expect(Object.fromEntries([...counts].map(([event, all]) => [event, all.length]))).toEqual({
    "prospect.updated": 2,
    "prospect.status_changed": 2,
    "note.created": 1,
    "prospect.import_completed": 2,
  });
  const completed = (counts.get("prospect.import_completed") ?? []).map(({ event }) => event.data);
  expect(completed).toContainEqual(expect.objectContaining({ id: job.id, imported: 1, updated: 1, skipped: 1 }));
  const { items } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name } } }));
  const changed = present(items.find((item) => item.sourceId === key));
  const shown = { name: `${name} 3`, lat: 1, currentStatus: { value: "New" }, address: { zip: "00501" } };
  expect(changed).toMatchObject(shown);
  const detail = dataOf(await as.owner.GET("/api/prospects/{id}", at(changed.id)));
  expect(detail.statusHistory.map(({ source }) => source)).toEqual(["csv-import", "csv-import"]);
  expect(detail.notes).toMatchObject([{ body: "called" }]);
});

test.each([
  ["a request", async (file: string) => bodyOf(await post(file, "?matchBy=id&onMatch=update"), 200, Imported)],
  ["a job", (file: string) => uploadFile(as.owner, file, { matchBy: "id", onMatch: "update" })],
])("%s moves appointments to a new rep, replaces addresses, and adds long notes", async (_, importing) => {
  const name = uniqueName();
  const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };
  const made = dataOf(await as.owner.POST("/api/prospects", { body: { name, address: home } }), 201);
  const startsAt = new Date(Date.now() + 86_400_000).toISOString();
  const endsAt = new Date(Date.now() + 90_000_000).toISOString();
  const body = { title: "Visit", startAt: startsAt, endAt: endsAt };
  dataOf(await as.owner.POST("/api/prospects/{id}/appointments", { ...at(made.id), body }), 201);
  // The import below updates only three of these 20 prospects. This is less than a quarter of the rows in the range of their ids, so the
  // import reads the three rows one by one, and not by a Query for the range.
  const rows = Array.from({ length: 20 }, (_row, i) => `${name} ${i},1,2,2 Oak St,Denver,CO,80202\n`);
  await post(`name,lat,lng,address1,city,state,zip\n${rows.join("")}`, "");
  const { items } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name, pageSize: 50 } } }));
  const [first, middle, last] = [items[0], items[10], items[19]].map((item) => present(item).id);
  const long = "x".repeat(600);
  const lines = [
    `${made.id},${as.rep.email},00501,`,
    `${first},,00501,${long}`,
    `${middle},,,${long}`,
    `${last},${as.rep.email},00501,`,
  ];
  const result = await importing(`id,assignedToEmail,zip,notes\n${lines.join("\n")}\n`);
  expect(result).toMatchObject({ imported: 0, updated: 4, skipped: 0, errors: [] });
  const shown = dataOf(await as.rep.GET("/api/prospects/{id}", at(made.id)));
  expect(shown).toMatchObject({ address: { zip: "00501" }, appointments: [{ title: "Visit" }] });
  const query = { from: new Date().toISOString(), to: endsAt };
  const calendar = dataOf(await as.rep.GET("/api/appointments", { params: { query } }));
  expect(calendar.filter(({ prospectId }) => prospectId === made.id)).toHaveLength(1);
  for (const id of [first, middle]) {
    expect(dataOf(await as.owner.GET("/api/prospects/{id}", at(present(id)))).notes).toMatchObject([{ body: long }]);
  }
});

test.each(["?matchBy=id", "?onMatch=update", "?matchBy=name&onMatch=update", "?matchBy=id&onMatch=merge"])(
  "%s is refused",
  async (query) => {
    problemOf(await post("id,name\n1,x\n", query), 400, "validation_failed");
  },
);

test("an import job with matchBy but without onMatch is refused", async () => {
  problemOf(await as.owner.POST("/api/prospects/imports", { body: { matchBy: "id" } }), 400, "validation_failed");
});
