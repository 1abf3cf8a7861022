/** Tests the undo of an import over HTTP: it deletes each prospect that the import has created and nobody has changed since. */
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { holdQueue } from "../harness/held-queue.ts";
import { bodyOf, dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";
import { endedJob, Imported, postFile, uploadFile } from "./files-over-http.ts";

const as = await newTeam();

const imported = async (file: string, query = "") => bodyOf(await postFile(as.owner, file, query), 200, Imported);

const begin = (id: number) =>
  as.owner.POST("/api/prospects/imports/{id}/undo", { ...at(id), body: { events: "summary" } });

const undone = async (importId: number) => endedJob(as.owner, dataOf(await begin(importId), 202).id);

const found = async (search: string) =>
  dataOf(await as.owner.GET("/api/prospects", { params: { query: { search, pageSize: 500 } } })).items;

const fileOf = (name: string, rows: number): string =>
  `name,lat,lng,status\n${Array.from({ length: rows }, (_, i) => `${name} ${i},39.5,-105,Sold\n`).join("")}`;

test("the undo of an upload hides prospects of several chunks, and makes one event", async () => {
  const name = uniqueName();
  const registrations = ["prospect.bulk_completed", "prospect.deleted"].map((event) => ({ event }));
  const { receiver } = await subscribe(as.owner, registrations);
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
