/** Tests the counts of a territory over HTTP. Also tests runs, which are jobs that assign the prospects inside a territory. */
import { expect, test } from "vitest";
import { at, type Client } from "../harness/client.ts";
import { holdQueue } from "../harness/held-queue.ts";
import { rectangle } from "../harness/rings.ts";
import { bodyOf, dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { endedJob } from "../jobs/files-over-http.ts";

const as = await newTeam();
const userOf = async (client: Client): Promise<number> => dataOf(await client.GET("/api/me")).user.id;
const [rep, rep2] = [await userOf(as.rep), await userOf(as.rep2)];

/** Each test has a separate area, so that the prospects of one test are not in the territories of another. */
let areas = 0;
const newArea = (): number => areas++ * 3;

async function territory(lng: number): Promise<number> {
  const polygon = rectangle(lng, 0, lng + 2, 2);
  return dataOf(await as.owner.POST("/api/territories", { body: { polygon } }), 201).id;
}

async function prospect(lng: number, lat: number, assignedToUserId?: number, more: object = {}): Promise<number> {
  const body = { name: uniqueName(), lng, lat, ...more, ...(assignedToUserId !== undefined && { assignedToUserId }) };
  return dataOf(await as.owner.POST("/api/prospects", { body }), 201).id;
}

const stats = async (id: number, client = as.owner) => dataOf(await client.GET("/api/territories/{id}/stats", at(id)));

const run = (id: number, body: object, client = as.owner) => client("POST", `/api/territories/${id}/runs`, body);

const ended = (id: number) => endedJob(as.owner, id);

const assignees = async (ids: readonly number[]) =>
  Promise.all(ids.map(async (id) => dataOf(await as.owner.GET("/api/prospects/{id}", at(id))).assignedTo?.id ?? null));

test("the counts are exact for what the caller may see, and the boundary belongs to the territory", async () => {
  const lng = newArea();
  const id = await territory(lng);
  const [status] = dataOf(await as.owner.GET("/api/statuses"));
  const currentStatusId = status?.id ?? 0;
  await prospect(lng + 1, 1, rep, { currentStatusId });
  await prospect(lng, 0, rep);
  await prospect(lng + 2, 1, rep2, { currentStatusId });
  await prospect(lng + 1, 1.999);
  await prospect(lng + 1, 2.001, rep);
  await prospect(lng + 2.001, 1);
  const all = await stats(id);
  expect(all.total).toBe(4);
  expect(all.byStatus.map(({ status, count }) => [status?.id, count])).toEqual([
    [undefined, 2],
    [currentStatusId, 2],
  ]);
  expect(all.byStatus.find((entry) => entry.status !== null)?.status?.value).toBe(status?.value);
  expect(all.byAssignee.map(({ user, count }) => [user?.id, count])).toEqual([
    [rep, 2],
    [undefined, 1],
    [rep2, 1],
  ]);
  expect(await stats(id, as.viewer)).toEqual(all);
  expect(await stats(id, as.rep)).toMatchObject({ total: 2, byAssignee: [{ user: { id: rep }, count: 2 }] });
  const { id: bare } = dataOf(await as.owner.POST("/api/territories", { body: {} }), 201);
  expect(await stats(bare)).toEqual({ total: 0, byStatus: [], byAssignee: [], untouchedDays: null });
  expect((await run(bare, { mode: "unassign", dryRun: true })).body).toEqual({ count: 0, samples: [] });
});

test("runs assign, reassign and unassign exactly the prospects of their mode, and are undone", async () => {
  const lng = newArea();
  const id = await territory(lng);
  const ids = [
    await prospect(lng + 1, 1),
    await prospect(lng + 1.5, 1),
    await prospect(lng + 1, 1.5, rep),
    await prospect(lng + 1, 0.5, rep2),
    await prospect(lng + 2.5, 1),
  ];
  const steps: [body: object, count: number, after: (number | null)[]][] = [
    [{ mode: "assign", toUserId: rep2 }, 2, [rep2, rep2, rep, rep2, null]],
    [{ mode: "reassign", fromUserId: rep2, toUserId: rep }, 3, [rep, rep, rep, rep, null]],
    [{ mode: "unassign", fromUserId: rep2 }, 0, [rep, rep, rep, rep, null]],
    [{ mode: "unassign" }, 4, [null, null, null, null, null]],
  ];
  for (const [body, count, after] of steps) {
    const before = await assignees(ids);
    const dry = await run(id, { ...body, dryRun: true });
    expect(dry.status, dry.text).toBe(200);
    expect(dry.body).toMatchObject({ count, samples: { length: count } });
    const other = await run(id, { ...body, expectedCount: count + 1 });
    problemOf(other, 409, "count_mismatch");
    expect(other.body).toMatchObject({ actualCount: count });
    expect(await assignees(ids)).toEqual(before);
    const answer = await run(id, { ...body, expectedCount: count });
    const job = bodyOf(answer, 202, Identified);
    expect(answer.headers.get("location")).toBe(`/api/jobs/${job.id}`);
    const done = await ended(job.id);
    expect(done).toMatchObject({ state: "completed", kind: "territory_run", territoryId: id, total: count });
    expect(done.changed).toBe(count);
    expect(await assignees(ids)).toEqual(after);
  }
  const job = bodyOf(await run(id, { mode: "assign", toUserId: rep, expectedCount: 4 }), 202, Identified);
  await ended(job.id);
  const undo = dataOf(await as.owner.POST("/api/jobs/{id}/undo", { ...at(job.id), body: {} }), 202);
  expect(await ended(undo.id)).toMatchObject({ kind: "undo", changed: 4 });
  expect(await assignees(ids)).toEqual([null, null, null, null, null]);
});

test("a further filter limits a run, and a user without canViewAllProspects changes only own prospects", async () => {
  const lng = newArea();
  const id = await territory(lng);
  const source = uniqueName();
  const importer = await userOf(as.importer);
  const named = await prospect(lng + 1, 1, importer, { emailAddress: `${source.replaceAll(/\W/g, "")}@x.test` });
  await prospect(lng + 1, 1.5, importer);
  await prospect(lng + 1, 0.5, rep);
  expect((await run(id, { mode: "unassign", dryRun: true }, as.importer)).body).toMatchObject({ count: 2 });
  expect((await run(id, { mode: "assign", toUserId: rep, dryRun: true }, as.importer)).body).toMatchObject({
    count: 0,
  });
  const filter = { search: `${source.replaceAll(/\W/g, "")}@x.test` };
  const dry = await run(id, { mode: "unassign", filter, dryRun: true });
  expect(dry.body).toMatchObject({ count: 1, samples: [{ id: named }] });
});

test("of two runs over common prospects at the same time, exactly one is accepted, and the other names it", async () => {
  const lng = newArea();
  newArea();
  const [one, same, beside, far] = [
    await territory(lng),
    await territory(lng + 1),
    await territory(lng + 2),
    await territory(lng + 3),
  ];
  await prospect(lng + 1.5, 1);
  const held = await holdQueue(as.owner);
  const body = { mode: "unassign", expectedCount: 0 };
  const answers = await Promise.all([one, same, one, same].map((id) => run(id, body)));
  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted).toHaveLength(1);
  const { id: winner } = bodyOf(accepted[0] ?? (await run(one, body)), 202, Identified);
  for (const answer of answers) {
    if (answer === accepted[0]) continue;
    problemOf(answer, 409, "conflict");
    expect(answer.text).toContain(`${winner}`);
    expect(answer.headers.get("location")).toBe(`/api/jobs/${winner}`);
  }
  // The territory `beside` has a common boundary with `one`, but no common prospect, so its run is accepted.
  const { id: neighbour } = bodyOf(await run(beside, body), 202, Identified);
  bodyOf(await run(far, body), 202, Identified);
  await held.release();
  await ended(winner);
  await ended(neighbour);
  expect((await run(one, body)).status).toBe(202);
});

test.each<[string, object]>([
  ["/mode", { mode: "give", expectedCount: 1 }],
  ["/toUserId", { mode: "assign", expectedCount: 1 }],
  ["/toUserId", { mode: "unassign", toUserId: rep, expectedCount: 1 }],
  ["/toUserId", { mode: "assign", toUserId: 2 ** 50, expectedCount: 1 }],
  ["/fromUserId", { mode: "assign", toUserId: rep, fromUserId: rep2, expectedCount: 1 }],
  ["/fromUserId", { mode: "reassign", toUserId: rep, expectedCount: 1 }],
  ["/fromUserId", { mode: "reassign", toUserId: rep, fromUserId: rep, expectedCount: 1 }],
  ["/fromUserId", { mode: "unassign", fromUserId: 2 ** 50, expectedCount: 1 }],
  ["/expectedCount", { mode: "unassign" }],
  ["/filter", { mode: "unassign", filter: { rep: "A" }, expectedCount: 1 }],
  ["/filter/bbox", { mode: "unassign", filter: { bbox: "1,2" }, expectedCount: 1 }],
])("an error at %s of a run is reported, case %#", async (pointer, body) => {
  const id = await territory(170);
  expect(problemOf(await run(id, body), 400, "validation_failed").map((fault) => fault.pointer)).toContain(pointer);
});
