/**
 * Tests over HTTP that both kinds of import update matching prospects, send the same events as a PATCH, and refuse wrong options. The undo
 * of an import deletes each prospect that the import has created and nobody has changed since.
 */
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { holdQueue } from "../harness/held-queue.ts";
import { bodyOf, dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";
import { endedJob, Imported, postFile, uploadFile } from "./files-over-http.ts";

const as = await newTeam();

const post = (file: string, query = "", headers: Record<string, string> = {}) =>
  postFile(as.owner, file, query, headers);

const imported = async (...request: Parameters<typeof post>) => bodyOf(await post(...request), 200, Imported);

const found = async (search: string) =>
  dataOf(await as.owner.GET("/api/prospects", { params: { query: { search, pageSize: 500 } } })).items;

test("both imports update a prospect with the events of a PATCH, and send one event each, but none for a new row or a dry run", async () => {
  const [name, key] = [uniqueName(), uniqueName()];
  const old = `sourceId,name,lat,lng,address1,city,state,zip\n${key},${name},1,2,1 Main St,Denver,CO,80202\n`;
  expect(await imported(old)).toMatchObject({ imported: 1, updated: 0 });
  const ended = "prospect.import_completed";
  const events = ["prospect.updated", "prospect.status_changed", "prospect.created", "note.created", ended];
  const { receiver } = await subscribe(as.owner, events);
  const rows = `${key},${name} 2,Sold,called,${uniqueName()},00501,,\n${key}-a,${name} new,,noted,,,1,2\n`;
  const first = `sourceId,name,status,notes,tags,zip,lat,lng\n${rows}`;
  const headers = { "Idempotency-Key": uniqueName() };
  const result = await imported(first, "?matchBy=sourceId&onMatch=update", headers);
  expect(result).toMatchObject({ imported: 1, updated: 1, skipped: 0, errors: [] });
  expect(await imported(first, "?matchBy=sourceId&onMatch=update", headers)).toEqual(result);
  problemOf(await post(first, "?matchBy=sourceId&onMatch=skip", headers), 422, "idempotency_mismatch");
  const second = `sourceId,name,status,lat,lng\n${key},${name} 3,New,,\n${key}-b,${name} new,,1,2\n${key}-b,,,,\n`;
  const matching = { matchBy: "sourceId", onMatch: "update" } as const;
  const counts = { state: "completed", processed: 3, imported: 1, updated: 1, skipped: 1 };
  expect(await uploadFile(as.owner, second, { ...matching, dryRun: true })).toMatchObject({ ...counts, written: 0 });
  const job = await uploadFile(as.owner, second, matching);
  expect(job).toMatchObject({ ...counts, written: 2 });
  await receiver.until(7);
  const byEvent = Map.groupBy(receiver.receipts, ({ event }) => event.event);
  expect(Object.fromEntries([...byEvent].map(([event, all]) => [event, all.length]))).toEqual({
    "prospect.updated": 2,
    "prospect.status_changed": 2,
    "note.created": 1,
    [ended]: 2,
  });
  const completed = (byEvent.get(ended) ?? []).map(({ event }) => event.data);
  expect(completed).toContainEqual(result);
  expect(completed).toContainEqual(expect.objectContaining({ id: job.id, imported: 1, updated: 1, skipped: 1 }));
  const changed = present((await found(name)).find((item) => item.sourceId === key));
  const shown = { name: `${name} 3`, lat: 1, currentStatus: { value: "New" }, address: { zip: "00501" } };
  expect(changed).toMatchObject(shown);
  const detail = dataOf(await as.owner.GET("/api/prospects/{id}", at(changed.id)));
  expect(detail.statusHistory.map(({ source }) => source)).toEqual(["csv-import", "csv-import"]);
  expect(detail.notes).toMatchObject([{ body: "called" }]);
});

test.each([
  ["a request", (file: string) => imported(file, "?matchBy=id&onMatch=update")],
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
  await imported(`name,lat,lng,address1,city,state,zip\n${rows.join("")}`);
  const items = await found(name);
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

test("options that are unknown or need each other are refused", async () => {
  for (const query of ["?matchBy=id", "?onMatch=update", "?matchBy=name&onMatch=update", "?matchBy=id&onMatch=merge"])
    problemOf(await post("id,name\n1,x\n", query), 400, "validation_failed");
  problemOf(await as.owner.POST("/api/prospects/imports", { body: { matchBy: "id" } }), 400, "validation_failed");
});

const begin = (id: number) =>
  as.owner.POST("/api/prospects/imports/{id}/undo", { ...at(id), body: { events: "summary" } });

const undone = async (importId: number) => endedJob(as.owner, dataOf(await begin(importId), 202).id);

const fileOf = (name: string, rows: number): string =>
  `name,lat,lng,status\n${Array.from({ length: rows }, (_, i) => `${name} ${i},39.5,-105,Sold\n`).join("")}`;

test("the undo of an upload hides prospects of several chunks, and makes one event", async () => {
  const name = uniqueName();
  const { receiver } = await subscribe(as.owner, ["prospect.bulk_completed", "prospect.deleted"]);
  const job = await uploadFile(as.owner, fileOf(name, 600));
  expect(job).toMatchObject({ state: "completed", imported: 600 });
  const undo = await undone(job.id);
  expect(undo).toMatchObject({ state: "completed", total: 600, changed: 600 });
  expect(await found(name)).toEqual([]);
  await receiver.until(1);
  expect(receiver.receipts.map(({ event }) => event)).toMatchObject([
    { event: "prospect.bulk_completed", data: { job: { id: undo.id, kind: "import_undo", changed: 600 } } },
  ]);
});

test("an undo that is cancelled while it waits changes nothing, and lists its records", async () => {
  const name = uniqueName();
  const done = await imported(fileOf(name, 3));
  const held = await holdQueue(as.owner);
  const { id } = dataOf(await begin(done.id), 202);
  const cancelled = dataOf(await as.owner.POST("/api/jobs/{id}/cancel", at(id)));
  expect(cancelled).toMatchObject({ state: "cancelled", total: 3, changed: 0, unprocessed: 3 });
  await held.release();
  const { items } = dataOf(await as.owner.GET("/api/jobs/{id}/results", at(id)));
  expect(new Set(items.map(({ outcome }) => outcome))).toEqual(new Set(["unprocessed"]));
  const left = (await found(name)).map((one) => one.id);
  expect(left).toHaveLength(3);
  expect(items.map((item) => item.id).toSorted()).toEqual(left.toSorted());
});

test("the undo of an import leaves the prospects that the import has updated", async () => {
  const [name, key] = [uniqueName(), uniqueName()];
  await imported(`sourceId,name,lat,lng\n${key},${name},1,2\n`);
  const file = `sourceId,name,lat,lng\n${key},${name} changed,,\n${key}-b,${name} new,1,2\n`;
  const { id } = await imported(file, "?matchBy=sourceId&onMatch=update");
  expect(await undone(id)).toMatchObject({ state: "completed", total: 1, changed: 1 });
  expect((await found(name)).map((one) => one.name)).toEqual([`${name} changed`]);
});

test("only a completed import of the own company can be undone, by a user who may import", async () => {
  const { id } = await uploadFile(as.owner, fileOf(uniqueName(), 1), { dryRun: true });
  problemOf(await begin(id), 409, "conflict");
  const open = dataOf(await as.owner.POST("/api/prospects/imports", { body: {} }), 201);
  problemOf(await begin(open.id), 409, "conflict");
  await as.owner.POST("/api/prospects/imports/{id}/cancel", at(open.id));
  problemOf(await begin(open.id), 409, "conflict");
  const own = await imported(fileOf(uniqueName(), 1));
  const body = { ...at(own.id), body: {} };
  problemOf(await as.otherOwner.POST("/api/prospects/imports/{id}/undo", body), 404, "not_found");
  problemOf(await as.rep.POST("/api/prospects/imports/{id}/undo", body), 403, "permission_denied");
});
