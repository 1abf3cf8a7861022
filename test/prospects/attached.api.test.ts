/** Tests appointments and notes over HTTP: their fields, how prospects and the calendar show them, and their webhook events. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Appointment, NewAppointment, NewProspect, operations } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

type CalendarQuery = NonNullable<operations["appointmentsList"]["parameters"]["query"]>;

const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

const newProspect = async (client = as.rep, body: NewProspect = {}): Promise<number> =>
  dataOf(await client.POST("/api/prospects", { body }), 201).id;
const make = async (prospectId: number, body: NewAppointment, client = as.rep): Promise<Appointment> =>
  dataOf(await client.POST("/api/prospects/{id}/appointments", { ...at(prospectId), body }), 201);
const calendar = async (query: CalendarQuery, client = as.rep): Promise<Appointment[]> =>
  dataOf(await client.GET("/api/appointments", { params: { query } }));
const idsOf = (list: readonly { id: number }[]): number[] => list.map(({ id }) => id);

const unchanged = await newProspect();

describe("an appointment", () => {
  test("has defaults, is read at its Location, and leaves the calendar when it is deleted", async () => {
    const prospectId = await newProspect();
    const startAt = "2031-03-01T10:00:00+02:00";
    const body = { title: "Roof", startAt };
    const answer = await as.admin.POST("/api/prospects/{id}/appointments", { ...at(prospectId), body });
    const made = dataOf(answer, 201);
    expect(made).toMatchObject({
      prospectId,
      title: "Roof",
      startAt: "2031-03-01T08:00:00.000Z",
      endAt: null,
      allDay: false,
      status: "scheduled",
      location: null,
      notes: null,
      assignedTo: { email: as.rep.email },
      createdBy: { email: as.admin.email },
    });
    expect(answer.response.headers.get("location")).toBe(`/api/appointments/${made.id}`);
    expect(dataOf(await as.rep.GET("/api/appointments/{id}", at(made.id)))).toEqual(made);
    const ofDay = async () => idsOf(await calendar({ from: "2031-03-01", to: "2031-03-01" }));
    expect(await ofDay()).toContain(made.id);
    dataOf(await as.rep.DELETE("/api/appointments/{id}", at(made.id)));
    expect(await ofDay()).not.toContain(made.id);
  });

  test("with an unassigned prospect is assigned to the caller", async () => {
    const made = await make(await newProspect(as.admin), { title: "Roof", startAt: inDays(1) }, as.viewer);
    expect(made.assignedTo?.email).toBe(as.viewer.email);
  });

  const start = "2031-03-01T10:00:00.000Z";
  test.each([
    ["/startAt", { title: "x" }],
    ["/startAt", { title: "x", startAt: null }],
    ["/startAt", { title: "x", startAt: "9999-12-31T23:59:59-14:00" }],
    ["/startAt", { title: "x", startAt: "0000-01-01T00:00:00+14:00" }],
    ["/endAt", { title: "x", startAt: start, endAt: "2031-03-01T09:59:59.999Z" }],
    ["/status", { title: "x", startAt: start, status: "done" }],
    ["/allDay", { title: "x", startAt: start, allDay: "no" }],
    ["/assignedToUserId", { title: "x", startAt: start, assignedToUserId: 1 }],
  ])("with a wrong %s is refused", async (pointer, body) => {
    const answer = await as.rep("POST", `/api/prospects/${unchanged}/appointments`, body);
    expect(problemOf(answer, 400, "validation_failed")).toMatchObject([{ pointer }]);
  });

  test("cannot be changed so that it ends before it starts", async () => {
    const { id } = await make(await newProspect(), { title: "x", startAt: start, endAt: start });
    for (const [body, pointer] of [
      [{ startAt: "2031-03-02" }, "/startAt"],
      [{ endAt: "2031-03-01" }, "/endAt"],
    ] as const) {
      const answer = await as.rep.PATCH("/api/appointments/{id}", { ...at(id), body });
      expect(problemOf(answer, 400, "validation_failed")).toMatchObject([{ pointer }]);
    }
  });
});

test("a PATCH of a prospect shows its next scheduled appointment, and GET shows all of them, in order of time", async () => {
  const prospectId = await newProspect();
  const plan = [
    [9, "scheduled"],
    [-3, "scheduled"],
    [1, "cancelled"],
    [5, "scheduled"],
    [2, "no_show"],
  ] as const;
  const made: Appointment[] = [];
  for (const [days, status] of plan) made.push(await make(prospectId, { title: "x", startAt: inDays(days), status }));
  const inOrder = made.toSorted((a, b) => (a.startAt < b.startAt ? -1 : 1));
  expect(dataOf(await as.rep.GET("/api/prospects/{id}", at(prospectId))).appointments).toEqual(inOrder);
  const patched = dataOf(await as.rep.PATCH("/api/prospects/{id}", { ...at(prospectId), body: { name: "new" } }));
  expect(patched.appointments).toEqual([made[3]]);
});

test("each change of an appointment emits one event", async () => {
  const filter = { "prospect.name": uniqueName() };
  const registrations = ["created", "updated", "cancelled"].map((end) => ({ event: `appointment.${end}`, filter }));
  const { receiver } = await subscribe(as.admin, registrations);
  const prospectId = await newProspect(as.rep, { name: filter["prospect.name"] });
  const first = await make(prospectId, { title: "first", startAt: inDays(1) });
  await as.rep.PATCH("/api/appointments/{id}", { ...at(first.id), body: { title: "moved", startAt: inDays(2) } });
  await as.rep.PATCH("/api/appointments/{id}", { ...at(first.id), body: { title: "moved" } });
  await as.rep.PATCH("/api/appointments/{id}", { ...at(first.id), body: { status: "cancelled" } });
  const second = await make(prospectId, { title: "second", startAt: inDays(1) });
  await as.rep.DELETE("/api/appointments/{id}", at(second.id));
  await receiver.until(5);
  const Data = z.looseObject({
    appointment: z.looseObject({ id: z.number(), title: z.string(), status: z.string() }),
    prospect: Identified,
  });
  const received = receiver.receipts.map(({ event }) => {
    const { appointment, prospect } = z.parse(Data, event.data);
    expect(prospect.id).toBe(prospectId);
    return [appointment.id, event.event, appointment.title, appointment.status].join(" ");
  });
  expect(received.toSorted()).toEqual(
    [
      `${first.id} appointment.cancelled moved cancelled`,
      `${first.id} appointment.created first scheduled`,
      `${first.id} appointment.updated moved scheduled`,
      `${second.id} appointment.cancelled second cancelled`,
      `${second.id} appointment.created second scheduled`,
    ].toSorted(),
  );
});

describe("the calendar", () => {
  test("has the appointments within its bounds, across months, soonest first", async () => {
    const prospectId = await newProspect();
    const starts = [
      "2033-02-28T23:59:59.999Z",
      "2033-01-31T12:00:00.000Z",
      "2033-02-01T00:00:00.000Z",
      "2033-01-31T11:59:59.999Z",
      "2033-03-01T00:00:00.000Z",
    ];
    const made: Appointment[] = [];
    for (const startAt of starts) made.push(await make(prospectId, { title: "x", startAt }));
    const within = await calendar({ from: "2033-01-31T12:00:00Z", to: "2033-02-28" });
    expect(within).toEqual([made[1], made[2], made[0]]);
    expect(await calendar({ from: "2033-02-28T23:59:59.999Z", to: "2033-02-28T23:59:59.999Z" })).toEqual([made[0]]);
    expect(await calendar({ from: "2033-03-02", to: "2033-01-01" })).toEqual([]);
    expect(await calendar({ from: "2033-02-20", to: "2033-02-10" })).toEqual([]);
  });

  test("accepts the last days of the year 9999, and refuses an assignee that is no id", async () => {
    await calendar({ from: "9999-12-20" });
    const wrong = await as.rep.GET("/api/appointments", { params: { query: { assignedToUserId: "x" } } });
    expect(problemOf(wrong, 400, "validation_failed")).toMatchObject([{ parameter: "assignedToUserId" }]);
  });

  test("is filtered by assignee", async () => {
    const prospectId = await newProspect();
    const mine = await make(prospectId, { title: "x", startAt: "2034-01-01" });
    const nobodys = await make(prospectId, { title: "x", startAt: "2034-01-02", assignedToUserId: null });
    const range = { from: "2034-01-01", to: "2034-01-31" };
    const user = mine.assignedTo?.id ?? 0;
    expect(idsOf(await calendar({ ...range, assignedToUserId: `${user}` }))).toEqual([mine.id]);
    expect(idsOf(await calendar({ ...range, assignedToUserId: `unassigned` }))).toEqual([nobodys.id]);
    expect(idsOf(await calendar({ ...range, assignedToUserId: `unassigned,${user}` }))).toEqual([mine.id, nobodys.id]);
    expect(await calendar({ ...range, assignedToUserId: `1` })).toEqual([]);
  });
});

const write = async (prospectId: number, body: string) =>
  dataOf(await as.rep.POST("/api/prospects/{id}/notes", { ...at(prospectId), body: { body } }), 201);

test("a note belongs to the caller, and is read at its Location", async () => {
  const prospectId = await newProspect();
  const body = { body: "Has a dog \u{1F415}" };
  const answer = await as.admin.POST("/api/prospects/{id}/notes", { ...at(prospectId), body });
  const made = dataOf(answer, 201);
  expect(made).toMatchObject({ body: "Has a dog \u{1F415}", createdBy: { email: as.admin.email } });
  expect(made.updatedAt).toBe(made.createdAt);
  const path = `/api/notes/${made.id}`;
  expect(answer.response.headers.get("location")).toBe(path);
  expect(dataOf(await as.rep.GET("/api/notes/{id}", at(made.id)))).toEqual(made);
});

test("a note of 10 000 characters is returned unchanged, and a longer one, one of null or one without a text is refused", async () => {
  const prospectId = await newProspect();
  const body = "\u{1F415}".repeat(10_000);
  const { id } = await write(prospectId, body);
  expect(dataOf(await as.rep.GET("/api/notes/{id}", at(id))).body).toBe(body);
  for (const wrong of [{ body: `${body}x` }, { body: null }, {}]) {
    const answer = await as.rep("POST", `/api/prospects/${prospectId}/notes`, wrong);
    const faults = problemOf(answer, 400, "validation_failed");
    expect(faults).toMatchObject([{ pointer: "/body" }]);
  }
});

test("note.created contains the note and its prospect; changes of a note emit nothing", async () => {
  const name = uniqueName();
  const { receiver } = await subscribe(as.admin, [{ event: "note.created", filter: { "prospect.name": name } }]);
  const prospect = dataOf(await as.rep.POST("/api/prospects", { body: { name } }), 201);
  const first = await write(prospect.id, "one");
  await as.rep.PATCH("/api/notes/{id}", { ...at(first.id), body: { body: "changed" } });
  await as.rep.DELETE("/api/notes/{id}", at(first.id));
  const second = await write(prospect.id, "two");
  await receiver.until(2);
  // The events are sorted by time. Ids cannot replace the time, because each function takes ids from its own block of 128 ids.
  const received = receiver.receipts.map(({ event }) => event.data).toSorted((a, b) => writtenMs(a) - writtenMs(b));
  expect(received).toEqual([first, second].map((note) => ({ note, prospect })));
});

const Received = z.object({ note: z.object({ createdAt: z.string() }) });
const writtenMs = (data: unknown): number => Date.parse(z.parse(Received, data).note.createdAt);
