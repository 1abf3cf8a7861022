/** Tests that the prospect in the body of an event equals the same prospect in the list of the API, including its next appointment. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, Identified, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "./subscribed.ts";

const as = await newTeam();
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
