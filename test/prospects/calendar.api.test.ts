/** Tests the calendar over HTTP. It must contain the appointments that start within the given times and whose prospects the caller sees. */
import { describe, expect, test } from "vitest";
import type { Appointment, NewAppointment, operations } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { dataOf, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

type CalendarQuery = NonNullable<operations["appointmentsList"]["parameters"]["query"]>;

const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

const newProspect = async (): Promise<number> => dataOf(await as.rep.POST("/api/prospects", { body: {} }), 201).id;
const make = async (prospectId: number, body: NewAppointment, client = as.rep): Promise<Appointment> =>
  dataOf(await client.POST("/api/prospects/{id}/appointments", { ...at(prospectId), body }), 201);
const calendar = async (query: CalendarQuery, client = as.rep): Promise<Appointment[]> =>
  dataOf(await client.GET("/api/appointments", { params: { query } }));
const idsOf = (list: readonly { id: number }[]): number[] => list.map(({ id }) => id);

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

  test("covers 31 days from now by default", async () => {
    const prospectId = await newProspect();
    const made: Appointment[] = [];
    for (const days of [-0.01, 0.01, 30.9, 31.1])
      made.push(await make(prospectId, { title: "x", startAt: inDays(days) }));
    const shown = (await calendar({})).filter((entry) => entry.prospectId === prospectId);
    expect(shown).toEqual(made.slice(1, 3));
  });

  test("refuses a range of more than 366 days and invalid dates", async () => {
    await calendar({ from: "2028-01-01", to: "2028-12-31" });
    await calendar({ from: "9999-12-20" });
    const tooLong = await as.rep.GET("/api/appointments", {
      params: { query: { from: "2028-01-01", to: "2029-01-02" } },
    });
    expect(problemOf(tooLong, 400, "validation_failed")).toMatchObject([{ parameter: "to" }]);
    for (const parameter of ["from", "to", "assignedToUserId"]) {
      const answer = await as.rep.GET("/api/appointments", { params: { query: { [parameter]: "2030-02-30" } } });
      expect(problemOf(answer, 400, "validation_failed")).toMatchObject([{ parameter }]);
    }
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

  test("shows no appointment of an invisible prospect, nor does any other route", async () => {
    const prospectId = await newProspect();
    const { id } = await make(prospectId, { title: "secret", startAt: "2035-01-01" });
    const range = { from: "2035-01-01", to: "2035-01-31" };
    const attempts = [
      ["GET", `/api/appointments/${id}`],
      ["PATCH", `/api/appointments/${id}`, { title: "mine" }],
      ["DELETE", `/api/appointments/${id}`],
      ["POST", `/api/prospects/${prospectId}/appointments`, { title: "mine", startAt: "2035-01-02" }],
    ] as const;
    for (const client of [as.rep2, as.otherOwner]) {
      for (const [method, path, body] of attempts) problemOf(await client(method, path, body), 404, "not_found");
      expect(await calendar(range, client)).toEqual([]);
    }
    expect(idsOf(await calendar(range, as.viewer))).toEqual([id]);
    problemOf(await as.rep.GET("/api/notes/{id}", at(id)), 404, "not_found");

    dataOf(await as.rep.DELETE("/api/prospects/{id}", at(prospectId)));
    for (const [method, path, body] of attempts) problemOf(await as.owner(method, path, body), 404, "not_found");
    expect(await calendar(range, as.owner)).toEqual([]);
  });
});
