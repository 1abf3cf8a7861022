/** Tests over HTTP that changes of prospects are sent to the subscribed receivers, and to no other receiver. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, present, uniqueName } from "../harness/shapes.ts";
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
    const { receiver, webhook } = await subscribe(as.admin, names);
    const [first, second] = await twoStatuses();
    const made = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada", currentStatusId: first } }), 201);
    const patch = { ...at(made.id), body: { currentStatusId: second, phoneNumber: "5" } };
    dataOf(await as.rep.PATCH("/api/prospects/{id}", patch));
    dataOf(await as.rep.PATCH("/api/prospects/{id}", { ...at(made.id), body: {} }));
    const { statusHistory } = dataOf(await as.rep.GET("/api/prospects/{id}", at(made.id)));
    await as.rep.DELETE("/api/prospects/{id}", at(made.id));
    await receiver.until(4);

    const byName = Object.fromEntries(receiver.receipts.map(({ event }) => [event.event, event]));
    expect(Object.keys(byName).toSorted()).toEqual(names.toSorted());
    expect(byName["prospect.updated"]?.data).toMatchObject({ changedFields: ["phoneNumber", "currentStatus"] });
    expect(byName["prospect.status_changed"]?.data).toMatchObject({
      previousStatus: { id: first },
      newStatus: { id: second },
      statusHistoryId: statusHistory[0]?.id,
      changedBy: { email: as.rep.email },
    });

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
    // The order of deliveries is not defined, so the test finds each delivery by its number of events.
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

const Shown = z.looseObject({ id: z.number(), appointments: z.array(z.looseObject({ title: z.string() })) });
const Listed = z.object({ items: z.tuple([Shown]) });
const inHours = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

test("every event of a prospect contains the prospect as the list shows it", async () => {
  const name = uniqueName();
  const events = ["created", "updated", "status_changed", "assigned", "deleted"].map((verb) => `prospect.${verb}`);
  const registrations = events.map((event) => ({ event, filter: { "prospect.sourceId": name } }));
  const { receiver } = await subscribe(as.owner, registrations);
  const list = async () => bodyOf(await as.owner("GET", `/api/prospects?search=${name}`), 200, Listed).items[0];
  const { id } = bodyOf(await as.owner("POST", "/api/prospects", { name, sourceId: name }), 201, Identified);
  await receiver.until(1);
  const path = `/api/prospects/${id}`;
  const shown: Record<string, unknown> = { "prospect.created": await list() };
  for (const [title, hours] of [["later", 5] as const, ["sooner", 3] as const, ["past", -3] as const]) {
    const body = { title, startAt: inHours(hours) };
    bodyOf(await as.owner("POST", `${path}/appointments`, body), 201, Identified);
  }
  const [status] = bodyOf(await as.owner("GET", "/api/statuses"), 200, z.array(Identified));
  const { user } = bodyOf(await as.rep("GET", "/api/me"), 200, z.object({ user: Identified }));
  const patch = { currentStatusId: status?.id, assignedToUserId: user.id };
  bodyOf(await as.owner("PATCH", path, patch), 200, Shown);
  await receiver.until(4);
  const changed = await list();
  expect(changed.appointments).toMatchObject([{ title: "sooner" }]);
  for (const verb of ["updated", "status_changed", "assigned"]) shown[`prospect.${verb}`] = changed;
  bodyOf(await as.owner("DELETE", path), 200, Identified);
  await receiver.until(5);
  shown["prospect.deleted"] = { ...changed, updatedAt: expect.any(String) };
  expect(Object.fromEntries(receiver.receipts.map(({ event }) => [event.event, event.data.prospect]))).toEqual(shown);
});
