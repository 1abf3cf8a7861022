/** Tests devices whose clock is ahead: the service replaces a time that is up to five minutes ahead by the time of arrival. */
import { expect, test } from "vitest";
import { at } from "../../harness/client.ts";
import { dataOf, present } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { operation, outcomes, results } from "./push.ts";

const { rep } = await newTeam();

test("with a time up to five minutes ahead has the time of its arrival, and its receipt compares the time that was sent", async () => {
  const { id } = dataOf(await rep.POST("/api/prospects", { body: {} }), 201);
  const [status] = dataOf(await rep.GET("/api/statuses"));
  const ahead = (ms: number) => ({ id, occurredAt: new Date(Date.now() + ms).toISOString() });
  const at2040 = { title: "A", startAt: "2040-01-01T10:00:00Z" };
  const sent = [
    operation("prospect.update", { ...ahead(1_000), fields: { currentStatusId: present(status?.id) } }),
    operation("note.create", { ...ahead(299_000), fields: { body: "n" } }),
    operation("appointment.create", { ...ahead(60_000), fields: at2040 }),
  ];
  expect(await outcomes(rep, sent)).toEqual(["applied", "applied", "applied"]);
  const shown = dataOf(await rep.GET("/api/prospects/{id}", at(id)));
  for (const fact of [shown.notes[0], shown.appointments[0], shown.statusHistory[0]]) {
    expect(fact?.occurredAt).toBe(fact?.createdAt);
  }
  expect(await outcomes(rep, sent)).toEqual(["duplicate", "duplicate", "duplicate"]);
  const other = { ...sent[0], occurredAt: shown.statusHistory[0]?.occurredAt };
  expect(await results(rep, [other])).toMatchObject([
    { outcome: "rejected", problem: { code: "idempotency_mismatch" } },
  ]);
  expect(dataOf(await rep.GET("/api/prospects/{id}", at(id))).statusHistory).toHaveLength(1);
});
