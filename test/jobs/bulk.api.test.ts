/** Tests bulk jobs over HTTP: creation, progress, counts and undo, and requests that arrive while a job runs. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { holdQueue } from "../harness/held-queue.ts";
import { dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { endedJob } from "./files-over-http.ts";

const as = await newTeam();
const DAY_MS = 86_400_000;

const made = async (count: number, more: object = {}) => {
  const ids: number[] = [];
  for (let i = 0; i < count; i++)
    ids.push(dataOf(await as.owner.POST("/api/prospects", { body: { name: uniqueName(), ...more } }), 201).id);
  return ids;
};

const bulk = (body: object) =>
  as.owner.POST("/api/prospects/bulk", { body: { action: { set: { currentStatusId: null } }, ...body } });
const idOf = (answer: Awaited<ReturnType<typeof bulk>>): number => z.parse(Identified, dataOf(answer, 202)).id;
const begun = async (body: object) => idOf(await bulk(body));
const ended = (id: number) => endedJob(as.owner, id);

test("a bulk job assigns prospects, and its undo gives them back", async () => {
  const ids = await made(5);
  const { id: userId } = dataOf(await as.rep.GET("/api/me")).user;
  const answer = await bulk({ ids, action: { set: { assignedToUserId: userId } } });
  const id = idOf(answer);
  expect(answer.response.headers.get("location")).toBe(`/api/jobs/${id}`);
  expect(await ended(id)).toMatchObject({ state: "completed", total: 5, changed: 5 });
  const assignee = async (one: number) => dataOf(await as.owner.GET("/api/prospects/{id}", at(one))).assignedTo;
  for (const one of ids) expect((await assignee(one))?.id).toBe(userId);
  const undo = dataOf(await as.owner.POST("/api/jobs/{id}/undo", { ...at(id), body: {} }), 202);
  expect(await ended(undo.id)).toMatchObject({ state: "completed", kind: "undo", total: 5, changed: 5 });
  for (const one of ids) expect(await assignee(one)).toBe(null);
  problemOf(await as.owner.POST("/api/jobs/{id}/undo", { ...at(id), body: {} }), 409, "conflict");
});

test("a filter needs the right count; a dry run returns the count and samples, and changes nothing", async () => {
  const name = uniqueName();
  const ids = await made(3, { source: name, emailAddress: `${name.replaceAll(/\W/g, "")}@x.test` });
  const filter = { search: `${name.replaceAll(/\W/g, "")}@x.test` };
  const action = { addTagIds: [dataOf(await as.owner.POST("/api/tags", { body: { value: uniqueName() } }), 201).id] };
  const dry = dataOf(await bulk({ filter, action, dryRun: true }), 200);
  expect(dry).toMatchObject({ count: 3, samples: { length: 3 } });
  const missing = problemOf(await bulk({ filter, action }), 400, "validation_failed");
  expect(missing).toMatchObject([{ pointer: "/expectedCount" }]);
  const mismatch = await bulk({ filter, action, expectedCount: 2 });
  expect(problemOf(mismatch, 409, "count_mismatch")).toMatchObject([{ pointer: "/expectedCount" }]);
  expect(mismatch.error).toMatchObject({ actualCount: 3 });
  const id = await begun({ filter, action, expectedCount: 3, events: "none" });
  expect(await ended(id)).toMatchObject({ total: 3, changed: 3, events: "none" });
  for (const one of ids) expect(dataOf(await as.owner.GET("/api/prospects/{id}", at(one))).tags).toHaveLength(1);
  expect(await ended(await begun({ ids, action }))).toMatchObject({ changed: 0, unchanged: 3 });
});

test.each([
  ["neither ids nor filter", {}, "/filter"],
  ["both ids and filter", { ids: [1], filter: { all: true }, expectedCount: 1 }, "/filter"],
  ["an empty filter", { filter: {}, expectedCount: 1 }, "/filter"],
  ["all together with a filter", { filter: { all: true, status: "New" }, expectedCount: 1 }, "/filter/all"],
  ["an unknown filter", { filter: { all: true, town: "Denver" }, expectedCount: 1 }, "/filter"],
  ["a filter without a value", { filter: { status: "" }, expectedCount: 1 }, "/filter/status"],
  ["a list of empty values", { filter: { city: "Denver", tagId: ', "",' }, dryRun: true }, "/filter/tagId"],
  ["a malformed filter", { filter: { bbox: "1,2" }, expectedCount: 1 }, "/filter/bbox"],
  ["no action", { ids: [1], action: {} }, "/action"],
  ["a deletion with another change", { ids: [1], action: { delete: true, addTagIds: [1] } }, "/action"],
  ["an empty set", { ids: [1], action: { set: {} } }, "/action/set"],
  ["an unknown status", { ids: [1], action: { set: { currentStatusId: 2 ** 50 } } }, "/action/set/currentStatusId"],
  ["an unknown assignee", { ids: [1], action: { set: { assignedToUserId: 2 ** 50 } } }, "/action/set/assignedToUserId"],
  ["an unknown tag", { ids: [1], action: { addTagIds: [2 ** 50] } }, "/action/addTagIds/0"],
  ["a tag added and removed", { ids: [1], action: { addTagIds: [1], removeTagIds: [1] } }, "/action/removeTagIds"],
])("%s is refused", async (_, body, pointer) => {
  const faults = problemOf(await bulk(body), 400, "validation_failed");
  expect(faults.map((fault) => fault.pointer)).toContain(pointer);
});

test.each([{ rep: "Rita Rep" }, { assignedToUserId: "unassigned" }])(
  "a user who may not filter by representative cannot choose prospects with %j",
  async (filter) => {
    const body = { filter, action: { addTagIds: [1] }, dryRun: true };
    problemOf(await as.importer.POST("/api/prospects/bulk", { body }), 403, "permission_denied");
  },
);

const control = (verb: "pause" | "resume" | "cancel", id: number) =>
  as.owner.POST(`/api/jobs/{id}/${verb}` as const, at(id));

/** Begins a job over 10 000 records and pauses it while it runs. Begins another one if the job has ended before the pause. */
async function pausedJob() {
  const ids = Array.from({ length: 10_000 }, (_, i) => 2 ** 50 + i);
  for (;;) {
    const id = await begun({ ids });
    while (dataOf(await as.owner.GET("/api/jobs/{id}", at(id))).state === "queued") await sleep(50);
    await control("pause", id);
    // On a busy machine, the pause may be answered before the job has stopped. The test therefore waits for the job.
    const job = await ended(id);
    if (job.state !== "completed") return job;
  }
}

test("jobs are paused, resumed and cancelled; the results name each record, also the unprocessed ones", async () => {
  const paused = await pausedJob();
  expect(paused).toMatchObject({ state: "paused", changed: 0 });
  expect(paused.unprocessed + paused.skipped).toBe(10_000);
  const long = paused.id;
  const held = await holdQueue(as.owner);
  const waiting = await begun({ ids: [2 ** 50] });
  expect(dataOf(await control("pause", waiting)).state).toBe("paused");
  expect(dataOf(await control("resume", waiting)).state).toBe("queued");
  expect(dataOf(await control("cancel", waiting)).state).toBe("cancelled");
  problemOf(await control("resume", waiting), 409, "conflict");
  expect(dataOf(await control("resume", long)).state).toBe("queued");
  expect(dataOf(await control("cancel", long)).state).toBe("cancelled");
  await held.release();
  const { skipped, unprocessed } = await ended(long);
  expect(skipped + unprocessed).toBe(10_000);
  let seen = 0;
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { outcome: "skipped" as const, limit: 500, ...(cursor !== undefined && { cursor }) };
    const page = dataOf(await as.owner.GET("/api/jobs/{id}/results", { params: { path: { id: long }, query } }));
    seen += page.items.length;
    cursor = page.nextCursor;
  }
  expect(seen).toBe(skipped);
  const lines = await as.owner.send("GET", `/api/jobs/${long}/results.ndjson`);
  expect(lines.text.trimEnd().split("\n")).toHaveLength(10_000);
  const csv = await as.owner.send("GET", `/api/jobs/${long}/results.csv?outcome=unprocessed`);
  expect(csv.text.trimEnd().split("\r\n")).toHaveLength(unprocessed + 1);
  const { items } = dataOf(await as.owner.GET("/api/jobs", { params: { query: { limit: 2 } } }));
  expect(items).toHaveLength(2);
  problemOf(await as.rep.GET("/api/jobs/{id}", at(long)), 403, "permission_denied");
});

test("a bulk job moves the upcoming appointments of a prospect to its new assignee, and deletes them with the prospect", async () => {
  const ids = await made(1);
  const startAt = new Date(Date.now() + DAY_MS).toISOString();
  const visit = { ...at(ids[0] ?? 0), body: { title: "Visit", startAt } };
  dataOf(await as.owner.POST("/api/prospects/{id}/appointments", visit), 201);
  const { user } = dataOf(await as.rep.GET("/api/me"));
  const query = { from: startAt, to: new Date(Date.now() + 2 * DAY_MS).toISOString() };
  const upcoming = async () => dataOf(await as.rep.GET("/api/appointments", { params: { query } })).length;
  expect(await upcoming()).toBe(0);
  const assigned = { ids, action: { set: { assignedToUserId: user.id } } };
  expect(await ended(await begun(assigned))).toMatchObject({ state: "completed", changed: 1 });
  expect(await upcoming()).toBe(1);
  expect(await ended(await begun({ ids, action: { delete: true } }))).toMatchObject({ state: "completed", changed: 1 });
  expect(await upcoming()).toBe(0);
});

test("while a job runs, users can be changed and disabled", async () => {
  const held = await holdQueue(as.owner);
  const { user } = dataOf(await as.importer.GET("/api/me"));
  const changed = dataOf(await as.owner.PATCH("/api/users/{id}", { ...at(user.id), body: { permissions: [] } }));
  expect(changed).toMatchObject({ permissions: [] });
  expect(dataOf(await as.owner.DELETE("/api/users/{id}", at(user.id)))).toEqual({ id: user.id });
  await held.release();
});
