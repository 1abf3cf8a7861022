/** Tests over HTTP which webhook events a bulk job causes. bulk-queues.deep.test.ts tests when they are sent. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import type { Receiver } from "../harness/receiver.ts";
import { dataOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { endedJob } from "../jobs/files-over-http.ts";
import { subscribe } from "./subscribed.ts";

const as = await newTeam();

const names = [
  "prospect.bulk_completed",
  "prospect.updated",
  "prospect.assigned",
  "prospect.deleted",
  "prospect.created",
];

const subscribed = () => subscribe(as.owner, names);
type Subscribed = Awaited<ReturnType<typeof subscribed>>;

/** Creates prospects, and waits for their events, which the receiver then forgets. */
async function prospects({ receiver }: Subscribed, count: number): Promise<number[]> {
  const body = { name: uniqueName() };
  const made = Array.from({ length: count }, () => as.owner.POST("/api/prospects", { body }));
  const ids = (await Promise.all(made)).map((answer) => dataOf(answer, 201).id);
  await receiver.until(count);
  receiver.receipts.length = 0;
  return ids;
}

const Started = z.object({ id: z.int() });

const ended = (id: number) => endedJob(as.owner, id);

const { id: repId } = dataOf(await as.rep.GET("/api/me")).user;

async function assign(ids: number[], events?: "each" | "none", assignedToUserId: number | null = repId) {
  const body = { ids, action: { set: { assignedToUserId } }, ...(events && { events }) };
  const answer = await as.owner.POST("/api/prospects/bulk", { body });
  return ended(Started.parse(dataOf(answer, 202)).id);
}

/**
 * Changes one prospect without a job, and waits for its event. Events are published in the order of the changes, so the delivery log then
 * contains the deliveries of all earlier changes. Returns the new name, and the events of all deliveries but the `made` oldest ones, which
 * are for the creations.
 */
async function ordinaryChange({ receiver, webhook }: Subscribed, id: number, made: number) {
  const name = uniqueName();
  dataOf(await as.owner.PATCH("/api/prospects/{id}", { ...at(id), body: { name } }));
  await receiver.untilSome(({ event }) => Named.safeParse(event.data).data?.prospect.name === name);
  const params = { path: { id: webhook.id }, query: { limit: 500 } };
  const { items } = dataOf(await as.owner.GET("/api/webhooks/{id}/deliveries", { params }));
  const events = items.slice(0, -made).map(({ event }) => event);
  return { name, events: events.toSorted() };
}

const Named = z.object({ prospect: z.object({ name: z.nullable(z.string()) }), changedFields: z.array(z.string()) });

const eventsOf = ({ receipts }: Receiver) => receipts.map(({ event }) => event);

describe("a bulk job", () => {
  test("makes no event if none is wanted, one for the whole job by default, and later changes make ordinary events", async () => {
    const webhook = await subscribed();
    const { receiver } = webhook;
    const ids = await prospects(webhook, 3);
    expect(await assign(ids, "none")).toMatchObject({ state: "completed", changed: 3 });
    const job = await assign(ids, undefined, null);
    expect(job).toMatchObject({ state: "completed", changed: 3, events: "summary" });
    await receiver.until(1);
    const { name, events } = await ordinaryChange(webhook, ids[0] ?? 0, 3);
    expect(events).toEqual(["prospect.bulk_completed", "prospect.updated"]);
    const [completed, updated] = eventsOf(receiver);
    expect(completed).toMatchObject({ event: "prospect.bulk_completed", eventCount: 1, data: { job } });
    expect(updated).toMatchObject({ event: "prospect.updated", data: { prospect: { name }, changedFields: ["name"] } });
    expect(updated?.data).not.toHaveProperty("bulk");
  });

  test("also makes the usual events with its id if each is wanted, and so does its undo", async () => {
    const webhook = await subscribed();
    const { receiver } = webhook;
    const ids = await prospects(webhook, 3);
    const job = await assign(ids, "each");
    await receiver.until(7);
    const undo = { ...at(job.id), body: { events: "each" as const } };
    const undone = await ended(dataOf(await as.owner.POST("/api/jobs/{id}/undo", undo), 202).id);
    expect(undone).toMatchObject({ state: "completed", changed: 3 });
    await receiver.until(14);
    for (const one of [job, undone]) {
      const own = eventsOf(receiver).filter(
        ({ data }) => z.object({ bulk: z.object({ jobId: z.literal(one.id) }) }).safeParse(data).success,
      );
      expect(own.map(({ event }) => event).toSorted()).toEqual([
        ...ids.map(() => "prospect.assigned"),
        ...ids.map(() => "prospect.updated"),
      ]);
    }
    const summaries = eventsOf(receiver).filter(({ event }) => event === "prospect.bulk_completed");
    expect(summaries.map(({ data }) => data)).toEqual(
      expect.arrayContaining([{ job: { ...job, undoneBy: null } }, { job: undone }]),
    );
    expect(new Set(eventsOf(receiver).map(({ id }) => id)).size).toBe(14);
    expect((await ordinaryChange(webhook, ids[0] ?? 0, 3)).events).toHaveLength(15);
  });

  test("that deletes makes deletions, and its undo makes creations", async () => {
    const webhook = await subscribed();
    const { receiver } = webhook;
    const ids = await prospects(webhook, 2);
    const body = { ids, action: { delete: true as const }, events: "each" as const };
    const job = await ended(Started.parse(dataOf(await as.owner.POST("/api/prospects/bulk", { body }), 202)).id);
    await receiver.until(3);
    await ended(
      dataOf(await as.owner.POST("/api/jobs/{id}/undo", { ...at(job.id), body: { events: "each" } }), 202).id,
    );
    await receiver.until(6);
    expect((await ordinaryChange(webhook, ids[0] ?? 0, 2)).events).toEqual([
      ...["prospect.bulk_completed", "prospect.bulk_completed", "prospect.created", "prospect.created"],
      ...["prospect.deleted", "prospect.deleted", "prospect.updated"],
    ]);
  });
});
