/** Tests notes over HTTP. test/http/matrix.api.test.ts tests who may read and change them. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

const newProspect = async (): Promise<number> => dataOf(await as.rep.POST("/api/prospects", { body: {} }), 201).id;
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
