/**
 * Tests over HTTP that changes of prospects are sent to the subscribed receivers, and to no other receiver. Signatures are in
 * libraries.deep.test.ts.
 */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { dataOf, present, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { newReceiver, subscribe } from "./subscribed.ts";

const as = await newTeam();

const Joined = z.object({
  events: z.array(z.object({ data: z.object({ prospect: z.object({ name: z.string() }) }) })),
});

async function twoStatuses(): Promise<[number, number]> {
  const [first, second] = dataOf(await as.rep.GET("/api/statuses"));
  return [present(first).id, present(second).id];
}

describe("events", () => {
  test("each change of a prospect arrives as one event", async () => {
    const names = ["prospect.created", "prospect.updated", "prospect.status_changed", "prospect.deleted"];
    const { receiver, webhook } = await subscribe(
      as.admin,
      names.map((event) => ({ event })),
    );
    const [first, second] = await twoStatuses();
    const made = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada", currentStatusId: first } }), 201);
    const changed = dataOf(
      await as.rep.PATCH("/api/prospects/{id}", {
        ...at(made.id),
        body: { currentStatusId: second, phoneNumber: "5" },
      }),
    );
    dataOf(await as.rep.PATCH("/api/prospects/{id}", { ...at(made.id), body: {} }));
    const { statusHistory } = dataOf(await as.rep.GET("/api/prospects/{id}", at(made.id)));
    await as.rep.DELETE("/api/prospects/{id}", at(made.id));
    await receiver.until(4);

    const byName = Object.fromEntries(receiver.receipts.map(({ event }) => [event.event, event]));
    expect(Object.keys(byName).toSorted()).toEqual(names.toSorted());
    expect(byName["prospect.created"]?.data).toEqual({ prospect: made });
    expect(byName["prospect.updated"]?.data).toMatchObject({
      prospect: changed,
      changedFields: ["phoneNumber", "currentStatus"],
    });
    expect(byName["prospect.status_changed"]?.data).toMatchObject({
      prospect: changed,
      previousStatus: { id: first },
      newStatus: { id: second },
      statusHistoryId: statusHistory[0]?.id,
      changedBy: { email: as.rep.email },
    });
    expect(byName["prospect.deleted"]?.data).toMatchObject({ prospect: { id: made.id } });

    for (const { headers, event } of receiver.receipts) {
      expect(event).toMatchObject({ companyId: webhook.companyId, webhookId: webhook.id, eventCount: 1 });
      expect(headers["x-service-event"]).toBe(event.event);
      expect(headers["x-service-delivery"]).toBe(event.id);
      expect(headers["x-service-attempt"]).toBe("1");
    }
    expect(new Set(receiver.receipts.map(({ event }) => event.id)).size).toBe(4);
  });

  test("events of another company and events that the filter refuses do not arrive", async () => {
    const other = await subscribe(as.otherOwner, [{ event: "prospect.created" }]);
    const name = uniqueName();
    const { receiver } = await subscribe(as.admin, [
      { event: "prospect.created", filter: { "prospect.name": [name] } },
    ]);
    await as.rep.POST("/api/prospects", { body: { name: "somebody else" } });
    await as.rep.POST("/api/prospects", { body: { name } });
    await receiver.until(1);
    await as.otherRep.POST("/api/prospects", { body: { name: "theirs" } });
    await other.receiver.until(1);
    expect(receiver.receipts.map(({ event }) => event.data)).toMatchObject([{ prospect: { name } }]);
    expect(other.receiver.receipts.map(({ event }) => event.data)).toMatchObject([{ prospect: { name: "theirs" } }]);
  });

  test("a failing receiver gets the same bytes again; a redirect is a failure and is not followed", async () => {
    const decoy = await newReceiver();
    const { receiver } = await subscribe(as.admin, [{ event: "prospect.created" }], (_, response, count) => {
      if (count === 1) response.writeHead(302, { Location: decoy.url }).end();
      else response.writeHead(204).end();
    });
    await as.rep.POST("/api/prospects", { body: {} });
    await receiver.until(2);
    const [first, second] = receiver.receipts;
    expect(second?.body).toBe(first?.body);
    expect(second?.headers["x-service-delivery"]).toBe(first?.headers["x-service-delivery"]);
    expect([first, second].map((receipt) => receipt?.headers["x-service-attempt"])).toEqual(["1", "2"]);
    expect(decoy.receipts).toHaveLength(0);
  });

  test("the changes of a prospect within the delay arrive as one delivery, not before its due time", async () => {
    // The local service of the tests divides delays by 60, so four minutes pass in four seconds.
    const { receiver, webhook } = await subscribe(as.admin, [{ event: "prospect.updated", delayMinutes: 4 }]);
    const { id } = dataOf(await as.rep.POST("/api/prospects", { body: { name: "0" } }), 201);
    const other = dataOf(await as.rep.POST("/api/prospects", { body: { name: "other" } }), 201);
    const rename = async (of: number, name: string) =>
      dataOf(await as.rep.PATCH("/api/prospects/{id}", { ...at(of), body: { name } }));
    const first = await rename(id, "1");
    for (const name of ["2", "3"]) await rename(id, name);
    await rename(other.id, "another");
    await receiver.until(2);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(first.updatedAt) + 4_000);
    // The order of deliveries is not defined.
    const ofCount = (count: number) => receiver.receipts.find(({ event }) => event.eventCount === count);
    const [joined, alone] = [ofCount(3)?.event, ofCount(1)?.event];
    expect(joined).toMatchObject({ eventCount: 3, createdAt: first.updatedAt, data: { prospect: { name: "3" } } });
    const { events } = z.parse(Joined, joined);
    expect(events.map(({ data }) => data.prospect.name)).toEqual(["1", "2", "3"]);
    expect(alone).toMatchObject({ eventCount: 1, data: { prospect: { id: other.id } } });
    const one = { params: { path: { id: webhook.id, deliveryId: present(joined).id } } };
    const shown = dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries/{deliveryId}", one));
    expect(shown.body).toBe(ofCount(3)?.body);
    await rename(id, "4");
    await receiver.until(3);
    expect(receiver.receipts[2]?.event).toMatchObject({ eventCount: 1, data: { prospect: { name: "4" } } });
  });
});
