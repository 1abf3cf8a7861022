/**
 * Tests over HTTP the writes that jobs rarely make, and the reads of requests that arrive while a job runs. In `npm run test:gate`, each
 * function has only the rights of the template, so these tests fail if such a right is missing.
 */
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { holdQueue } from "../harness/held-queue.ts";
import { dataOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { endedJob, uploadFile } from "./files-over-http.ts";

const as = await newTeam();
const DAY_MS = 86_400_000;

async function ended(body: object) {
  const job = dataOf(await as.owner.POST("/api/prospects/bulk", { body: { action: {}, ...body } }), 202);
  if (!("id" in job)) throw new Error("no job");
  return endedJob(as.owner, job.id);
}

test("a bulk job moves the upcoming appointments of a prospect to its new assignee, and deletes them with the prospect", async () => {
  const { id } = dataOf(await as.owner.POST("/api/prospects", { body: { name: uniqueName() } }), 201);
  const startAt = new Date(Date.now() + DAY_MS).toISOString();
  const visit = { ...at(id), body: { title: "Visit", startAt } };
  dataOf(await as.owner.POST("/api/prospects/{id}/appointments", visit), 201);
  const { user } = dataOf(await as.rep.GET("/api/me"));
  const query = { from: startAt, to: new Date(Date.now() + 2 * DAY_MS).toISOString() };
  const upcoming = async () => dataOf(await as.rep.GET("/api/appointments", { params: { query } })).length;
  expect(await upcoming()).toBe(0);
  const assigned = { ids: [id], action: { set: { assignedToUserId: user.id } } };
  expect(await ended(assigned)).toMatchObject({ state: "completed", changed: 1 });
  expect(await upcoming()).toBe(1);
  expect(await ended({ ids: [id], action: { delete: true } })).toMatchObject({ state: "completed", changed: 1 });
  expect(await upcoming()).toBe(0);
});

test("an import job creates the tags that a file names", async () => {
  const [name, tag] = [uniqueName(), uniqueName()];
  const job = await uploadFile(as.owner, `name,lat,lng,tags\n${name},39.5,-105,${tag}\n`);
  expect(job).toMatchObject({ state: "completed", imported: 1, errors: [] });
  const { items } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name } } }));
  expect(items.map(({ tags }) => tags.map((one) => one.tag.value))).toEqual([[tag]]);
});

test("while a job runs, users can be changed and disabled", async () => {
  const held = await holdQueue(as.owner);
  const { user } = dataOf(await as.importer.GET("/api/me"));
  expect(dataOf(await as.owner.PATCH("/api/users/{id}", { ...at(user.id), body: { permissions: [] } }))).toMatchObject({
    permissions: [],
  });
  expect(dataOf(await as.owner.DELETE("/api/users/{id}", at(user.id)))).toEqual({ id: user.id });
  await held.release();
});
